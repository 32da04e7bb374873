"""The density estimate: the mixture of the nodes, learned round by round.

model       the nodes of the tree, and when they learn
round       samples as the frozen model sees them, until their round ends
imputation  samples with missing features
context     the density of values given their context
spread      the usual size of each feature's differences, as it is now
unscaled    features that have not yet shown what their scale is
"""

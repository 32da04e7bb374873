"""The density estimate: learned round by round, forgotten by half-lives.

model       the nodes of the tree, and when they learn
round       samples as the frozen model sees them, until their round ends
receipt     how one sample was learned, to take it back later
imputation  samples with missing features
forgetting  the clock by which old samples count less
"""

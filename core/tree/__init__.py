"""The tree: nested subspaces, the nodes that they hold, and how the tree grows.

subspaces  the hyperplanes, and which node holds which sample
nodes      what each node has counted, its prior, density and weight
growth     what every way of growing does
schedule   the paper's: splits at fixed numbers of samples, by a sequential 2-means
evidence   the default: splits when two densities explain a leaf better than one
"""

"""How the tree grows (Alg. 2): when which node is cut, and by which hyperplane.

base      what every way of growing does
schedule  the paper's: splits at fixed numbers of samples, by a sequential 2-means
evidence  the default: splits when two densities explain a leaf better than one
"""

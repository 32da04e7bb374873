"""The tree of nested subspaces (Alg. 2).

subspaces  the hyperplanes, and which node holds which sample
"""

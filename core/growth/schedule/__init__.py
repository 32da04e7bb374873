"""The paper's growth: splits at fixed numbers of samples, by a sequential 2-means.

growth     splits by the schedule
dates      the numbers of samples at which they are due
two_means  the two centroids of every node
"""

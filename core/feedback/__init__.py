"""What labels do beyond the threshold.

resemblance       what labels add to scores
kernels           how dense known anomalies and normals lie round a sample
labelled_samples  the samples that were labelled last
background        samples of late, and the spread of their scores
costs             what the decisions turned out to cost
"""

"""The engine of a detector: its state, and the two paths over it.

state        everything that a detector knows; saving and restoring it
sample_path  a sample: validate, scale, score, decide, learn
label_path   a label that comes later: validate, then correct threshold, costs and densities
learning     what both teach the densities

A decision rule is a core.threshold.Threshold; the state makes the one that its config names (core.threshold.factory),
the sample path asks it for the threshold of each score, and the label path tells it each label.
"""

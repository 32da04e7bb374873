"""The engine of a detector: its state, and the paths over it.

state        everything that a detector knows; saving and restoring it
sample_path  a sample: validate, scale, score, decide, learn
label_path   a label that comes later: validate, then correct threshold, costs, density and scores
warm_start   a new state that begins with the model of another
reconfigure  another config for a state that has learned
scales       what follows when a feature moves late, or another spread is usual now
together     a sample for each of many detectors, in one pass
learning     what both teach

The state holds a core.decision.rule.DecisionRule. The sample path asks it to decide each score, and the label path
tells it each label. The rule holds the core.threshold.Threshold that the config names (core.threshold.factory).
"""

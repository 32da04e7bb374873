"""The engine: the state of a detector, and the two paths over it, of a sample and of a label."""

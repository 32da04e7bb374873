"""The threshold: one rule a file, and the scores that they remember."""

"""Today's streaming detectors beside ours, on the same streams in one run."""

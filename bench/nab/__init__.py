"""The Numenta Anomaly Benchmark: 58 labelled series, scored as its authors do."""

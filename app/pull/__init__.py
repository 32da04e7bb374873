"""Feeds streams from a Prometheus: queries are features, a label names the stream, a step is a sample."""

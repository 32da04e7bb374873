"""Benchmarks: the paper's experiments, and today's peers side by side."""

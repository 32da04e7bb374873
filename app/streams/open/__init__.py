"""Streams in memory: loaded from the store, leased, kept within the memory limit, stored as snapshots."""

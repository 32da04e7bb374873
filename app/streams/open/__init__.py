"""Streams in memory: opened from the log, leased, bounded, snapshotted."""

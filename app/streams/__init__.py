"""Streams in memory: sessions over a detector and its log."""

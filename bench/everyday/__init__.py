"""Everyday streams in raw units: what is decided there, with few labels and without, beside simple peers."""

"""Everyday streams in raw units: the decisions with few labels and without, beside simple peers."""

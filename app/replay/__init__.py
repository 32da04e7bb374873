"""Replays: send a file of labelled samples to a service as if it happened now, with late labels."""

"""Replays: a file of labelled samples goes through a service as if it happened now, labels following late."""

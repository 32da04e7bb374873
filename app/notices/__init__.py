"""Notices of incidents: who is told, what, and how it gets there."""

"""Reads the bodies of requests: samples, labels, points and configs."""

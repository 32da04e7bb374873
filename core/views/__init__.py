"""The model for people: its description, a grid of its density, and why a sample has its score."""

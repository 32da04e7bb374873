"""The model for people.

description  its nodes and hyperplanes in the user's units, and grids of its density
explanation  why a sample has its score
"""

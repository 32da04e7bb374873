"""The model for people.

description  its nodes and hyperplanes in the user's units, and grids of its density
explanation  why a sample has its score
band         between which values a feature is expected, given the context
quantiles    quantiles of mixtures
"""

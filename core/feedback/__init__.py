"""What labels do beyond the threshold.

supervision  a second density, of labelled normals, mixed in as it earns it
costs        what the decisions turned out to cost
"""

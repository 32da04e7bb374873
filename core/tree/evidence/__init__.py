"""Growth by evidence: a leaf is cut where two densities explain its samples better than one."""

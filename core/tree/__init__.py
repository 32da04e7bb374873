"""The tree of subspaces: its nodes, what each of them has learned, and the rules by which it grows."""

"""The experiments of the ITAN paper."""

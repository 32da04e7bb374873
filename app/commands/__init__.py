"""The commands of `itan`, one file each. None may import numpy at module level: `serve` must set its threads first."""

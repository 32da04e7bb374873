"""Growth by the paper's schedule: leaves are cut at fixed numbers of samples, by two means."""

"""What labels do beyond the threshold: which samples are known, and what the decisions cost."""

"""The evaluation as one HTML page that needs nothing else."""

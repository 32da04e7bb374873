"""What the service says: one pipeline for its own lines and for those of the libraries it stands on."""

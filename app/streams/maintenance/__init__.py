"""Background work and operators' work: snapshots, checks, repairs, backups, deletion of silent streams."""

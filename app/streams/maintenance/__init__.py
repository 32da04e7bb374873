"""Care for streams at rest: backups, checks, repairs, and the deletion of silent ones."""

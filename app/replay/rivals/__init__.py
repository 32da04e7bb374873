"""Other ways to flag the same samples, with the same labels at the same moments: what a replay is compared with."""

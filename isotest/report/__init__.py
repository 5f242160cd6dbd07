"""What a run found, for a terminal, a CI job's page and other programs."""

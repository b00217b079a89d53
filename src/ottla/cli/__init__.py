"""The `ottla` command line."""

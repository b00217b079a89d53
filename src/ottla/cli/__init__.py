"""The command line: `ottla ...`."""

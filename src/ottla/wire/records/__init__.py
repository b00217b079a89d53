"""What the log itself carries and what lies beside it on disk: metadata, control and snapshot records."""

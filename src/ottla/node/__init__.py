"""One node: its configuration, how it is put together, and how it runs as a process."""

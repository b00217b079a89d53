"""Drives the machines and the log: the metadata log, partitions, what waits, and the publisher that follows the image."""

"""Ottla: the event log that Apache Kafka describes, in Python."""

__version__ = "0.1.0"

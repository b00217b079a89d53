"""Brokers inside tests: `Broker` for threads, `AsyncBroker` for an event loop, and the pytest fixtures."""

"""Connections, the dispatch table, and one module per API."""

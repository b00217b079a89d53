"""Requests and responses: one module per API, each message declared once for all versions."""

"""The requests and responses, one module per API, each declared once for all its versions."""

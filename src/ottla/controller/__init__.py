"""The controller, a deterministic state machine: requests in, metadata records and responses out."""

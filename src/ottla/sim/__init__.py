"""The simulated ports: a machine in memory, with virtual time, whose every turn follows from a seed."""

"""Simulated ports: a machine in memory and in virtual time. A run is fully determined by its seed."""

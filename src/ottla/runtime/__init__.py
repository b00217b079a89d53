"""Run the state machines on real logs: metadata log, partitions, delayed fetches, coordinators, log maintenance."""

"""Run the state machines against real logs: metadata log, partitions, delayed fetches, coordinators, log maintenance."""

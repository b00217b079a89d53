"""The ports on a real machine: files, sockets, threads, processes, clock and randomness."""

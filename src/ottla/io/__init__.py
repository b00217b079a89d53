"""The real ports: files, sockets, threads, the clock and randomness of the machine a node runs on."""

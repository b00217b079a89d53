"""Side-by-side benchmarks, each against the peer it names. `bench/peers.py` starts the brokers, for the tests too."""

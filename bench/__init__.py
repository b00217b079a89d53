"""Side-by-side benchmarks. `bench/peers.py` starts the brokers, for tests too."""

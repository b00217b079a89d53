"""Groups as pure state machines: one shard for each partition of `__consumer_offsets`, classic groups and their offsets."""

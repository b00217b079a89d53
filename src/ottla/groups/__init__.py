"""Group coordinator state machines: one shard per partition of `__consumer_offsets`, for classic groups and offsets."""

"""One partition on disk: segments, indexes, checkpoints, producer state, in Kafka's formats, through the Disk port."""

"""One partition on disk: segments, indexes, checkpoints and producer state, in Kafka's own formats, through the Disk
port."""

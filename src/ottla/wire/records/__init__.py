"""Records of Kafka's internal logs and files: metadata, groups, control records, snapshots, quorum state."""

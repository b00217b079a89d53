"""Cluster metadata: an immutable image, deltas that produce the next image, and the catalog of configs."""

"""The cluster's metadata: a frozen image, the deltas that make the next one, and the catalogue of configs."""

"""One node: configuration, data directories, assembly from its ports, and the node process."""

"""The controller: decides what changes in the cluster's metadata, and changes its own view by replaying the records alone."""

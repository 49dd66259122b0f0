"""The Restate store: what is asked of it becomes invocations of virtual objects on a cluster."""

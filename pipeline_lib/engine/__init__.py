"""Who computes: this machine's processes, or a cluster's."""

"""The git door: smart HTTP, LFS and SSH for branches that real git clients clone, fetch and push."""

"""Agent NAS: every run of an agent gets a lease and a branch of its own; nothing reaches main but by a decision."""

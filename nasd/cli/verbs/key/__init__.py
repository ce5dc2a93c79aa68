"""SSH keys of principals and runs, for git."""

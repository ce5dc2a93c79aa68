"""The mount, tried by ordinary programs and system calls on real mounts."""

"""Ways to speak with the kernel, one module each; found by name, none knows another."""

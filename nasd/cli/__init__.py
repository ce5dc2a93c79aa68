"""The command ``nas``: noun, then verb. Data goes to standard output, talk to standard error."""

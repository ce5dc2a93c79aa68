"""The installed program, driven as a person would."""

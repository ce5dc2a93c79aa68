"""Questions for a person."""

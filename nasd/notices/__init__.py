"""Telling people that a question waits for them: whom (targets), what (messages), and until it was told (delivery)."""

"""Who can authenticate and be held to account."""

"""What every door of the HTTP family shares: authentication, limits, conditions, ranges, streaming, errors by kind, the server.

A door of the family is an ASGI application of its own folder; it imports from here and from no other door.
"""

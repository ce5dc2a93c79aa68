"""The independent verifier of an exported record: `nas-verify`.

It imports nothing of Agent NAS: the standard library and `cryptography` are all it needs, so that it can be read, and run, apart from what
it checks.
"""

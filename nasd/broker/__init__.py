"""The credential broker: a process of its own that alone resolves references to secrets and acts with them.

`process` is that process; `environment` and `supervisor` are the daemon's half. Nothing else of the appliance imports what is here.
"""

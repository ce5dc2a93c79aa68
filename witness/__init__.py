"""A witness: a small program, for another machine, that cosigns the checkpoints of logs as long as each continues the one before.

It speaks C2SP tlog-witness (``add-checkpoint``) and imports nothing of Agent NAS: the standard library and `cryptography` are all it needs.
"""

"""Git's questions for a password, answered by the broker over a socket that only the git it started inherits.

1. The password is told for the pinned scheme, host and port and nothing else: a server that sends git elsewhere gets none.
2. It is in no argument, no variable, no file and no configuration; `nasd.broker.credential` hands it on.
"""

from __future__ import annotations

import shlex
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trust.accounts import Account
from trust.secret import Secret

LONGEST = 1 << 16
_PROGRAM = Path(__file__).with_name("credential.py")


def answer_git(account: Account, question: bytes, secret: Secret) -> bytes:
    """Return what git is told; nothing when it asks for another place than the account's. Pure."""
    asked = dict(line.split(b"=", 1) for line in question.split(b"\n") if b"=" in line)
    here = account.destination
    if asked.get(b"protocol") != here.scheme.encode() or asked.get(b"host") != here.authority.encode():
        return b"quit=1\n\n"
    if asked.get(b"username", account.username.encode()) != account.username.encode():
        return b"quit=1\n\n"
    return b"username=" + account.username.encode() + b"\npassword=" + secret.reveal() + b"\n\n"


@contextmanager
def answering(account: Account, secret: Secret) -> Iterator[tuple[int, str]]:
    """Answer git's questions while the block runs; gives the descriptor that git inherits, and its setting ``credential.helper``."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=_serve, args=(ours, account, secret), name="password", daemon=True)
    thread.start()
    try:
        program = shlex.join([sys.executable, "-I", "-S", str(_PROGRAM), str(theirs.fileno())])
        yield theirs.fileno(), f"!{program}"
    finally:
        theirs.close()
        with suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        thread.join()
        ours.close()


def _serve(ours: socket.socket, account: Account, secret: Secret) -> None:
    with suppress(OSError):
        while question := _receive(ours):
            ours.sendall(answer_git(account, question, secret))


def _receive(ours: socket.socket) -> bytes:
    """Return the next question, nothing at the end or when it is too long to be one."""
    question = b""
    while not question.endswith(b"\n\n"):
        piece = ours.recv(LONGEST)
        question += piece
        if not piece or len(question) > LONGEST:
            return b""
    return question

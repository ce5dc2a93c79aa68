"""What git starts to get a password: it hands git's question to the broker over an inherited socket, and the answer to git.

A program of its own, with nothing of the appliance in it: it is started by a child of the broker, knows no secret before git asks, and
lives for one question. Its argument is the number of the descriptor; git adds the word that says what it wants.
"""

import socket
import sys

LONGEST = 1 << 16


def main() -> int:
    """Answer one question of git's (gitcredentials(7)). Returns the exit status."""
    descriptor, wanted = int(sys.argv[1]), sys.argv[2]
    if wanted != "get":
        return 0  # nothing is stored and nothing erased
    question = sys.stdin.buffer.read(LONGEST)
    with socket.socket(fileno=descriptor) as broker:
        broker.sendall(question.rstrip(b"\n") + b"\n\n")
        answer = b""
        while not answer.endswith(b"\n\n") and (piece := broker.recv(LONGEST)):
            answer += piece
    sys.stdout.buffer.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())

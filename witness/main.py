"""``nas-witness``: the command line of a witness.

0 is success, 1 what could not be done, 2 what was asked wrongly.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from witness.notes import Cosigner, Malformed, parse_key, parse_private
from witness.serve import Server
from witness.shelf import Shelf

_KEY, _STATE = "witness.key", "witness.db"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    asked = _parser().parse_args(arguments)
    try:
        return int(asked.run(asked))
    except (Malformed, OSError, sqlite3.Error, ValueError) as error:
        print(f"nas-witness: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("nas-witness", description="Cosign the checkpoints of logs as long as each continues the one before.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    make = verbs.add_parser("init", help="make a witness in a folder and print its public key")
    make.add_argument("folder", type=Path)
    make.add_argument("--name", required=True, help="the witness's name, such as witness.example/w1")
    make.set_defaults(run=_init)
    key = verbs.add_parser("key", help="print the witness's public key")
    key.add_argument("folder", type=Path)
    key.set_defaults(run=_show_key)
    add = verbs.add_parser("add", help="know a log, by the key that `nas record keys` prints")
    add.add_argument("folder", type=Path)
    add.add_argument("key")
    add.set_defaults(run=_add)
    show = verbs.add_parser("show", help="print each known log and what was last cosigned of it")
    show.add_argument("folder", type=Path)
    show.set_defaults(run=_show)
    serve = verbs.add_parser("serve", help="answer at an address until interrupted")
    serve.add_argument("folder", type=Path)
    serve.add_argument("--listen", default="127.0.0.1:8421", metavar="HOST:PORT")
    serve.add_argument("--certificate", type=Path, metavar="PEM", help="with --private-key: speak TLS")
    serve.add_argument("--private-key", type=Path, metavar="PEM")
    serve.set_defaults(run=_serve)
    return parser


def _init(asked: argparse.Namespace) -> int:
    asked.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    cosigner = Cosigner(asked.name, os.urandom(32))
    descriptor = os.open(asked.folder / _KEY, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as sink:
        sink.write(cosigner.render_private())
        sink.flush()
        os.fsync(sink.fileno())
    Shelf(asked.folder / _STATE)
    print(cosigner.key.render())
    return 0


def _show_key(asked: argparse.Namespace) -> int:
    print(_cosigner(asked.folder).key.render())
    return 0


def _add(asked: argparse.Namespace) -> int:
    key = parse_key(asked.key)
    _shelf(asked.folder).add_log(key)
    print(f"known: {key.name}")
    return 0


def _show(asked: argparse.Namespace) -> int:
    for key, head in _shelf(asked.folder).logs():
        print(f"{key.name}\t{head.size if head else 0}\t{head.root.hex() if head else '-'}")
    return 0


def _serve(asked: argparse.Namespace) -> int:
    host, separator, port = asked.listen.rpartition(":")
    if not separator or not port.isdigit():
        raise ValueError(f"expected HOST:PORT, found {asked.listen!r}")
    if bool(asked.certificate) != bool(asked.private_key):
        raise ValueError("--certificate and --private-key belong together")
    with Server((host.strip("[]"), int(port)), _shelf(asked.folder), _cosigner(asked.folder)) as server:
        if asked.certificate:
            server.use_tls(asked.certificate, asked.private_key)
        print(f"listening on {server.server_address[0]!s}:{server.server_address[1]}", flush=True)
        server.serve_forever()
    return 0


def _cosigner(folder: Path) -> Cosigner:
    return parse_private((folder / _KEY).read_text(encoding="utf-8"))


def _shelf(folder: Path) -> Shelf:
    if not (folder / _KEY).exists():
        raise FileNotFoundError(f"{folder} holds no witness: make one with `nas-witness init`")
    return Shelf(folder / _STATE)


if __name__ == "__main__":
    sys.exit(main())

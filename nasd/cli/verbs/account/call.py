"""``nas account call``."""

from __future__ import annotations

import base64
import sys
from typing import Any

import click

from interfaces.port import Document
from nasd.cli.options import read_pairs
from nasd.cli.session import Session, verb
from nasd.cli.tables import plain
from nasd.client import place


@verb
@click.argument("account")
@click.argument("path")
@click.option("-X", "--method", default="GET", show_default=True, help="The method.")
@click.option("--query", multiple=True, metavar="NAME=VALUE", help="A part of the query; repeatable.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; repeatable.")
@click.option("--body", help="The body, as text; - is standard input.")
@click.option("--body-path", metavar="PATH", help="The body, from a file of the run's branch.")
@click.option("--into", metavar="PATH", help="Write the answer to a file of the run's branch.")
@click.option("--run", help="The run it is for, when you act with a principal's token.")
def command(
    session: Session, account: str, path: str, query: tuple[str, ...], headers: tuple[str, ...], body: str | None, **given: Any
) -> None:
    """Have the broker send a request with an account.

    What came back is printed. PATH is below the account's destination. A request that a rule asks about becomes a gate (exit code 4);
    repeat exactly the same once it is approved.
    """
    pairs = [list(pair) for pair in read_pairs(query, "--query").items()]
    wanted = {**given, "path": path, "query": pairs or None, "headers": read_pairs(headers, "--header") or None}
    if body is not None:
        content = sys.stdin.buffer.read() if body == "-" else body.encode("utf-8", "surrogateescape")
        wanted["body_base64"] = base64.b64encode(content).decode()
    document = session.client.post(place("/v1/accounts/{account}/call", account=account), wanted)
    session.say(f"{document['status']}: {document['size']} bytes, labelled {document['label']}")
    session.show(document, lambda: _print_body(document))


def _print_body(document: Document) -> None:
    if document["into"] is not None:
        print(plain(document["into"]))
    elif "body_base64" in document:
        sys.stdout.buffer.write(base64.b64decode(document["body_base64"]))
    elif sys.stdout.isatty():
        print("\n".join(map(plain, document["body"].splitlines())))
    else:
        sys.stdout.buffer.write(document["body"].encode())

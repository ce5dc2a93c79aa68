"""``nas app-password create``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, require_secret, verb


@verb
@click.option("--for", "door", type=click.Choice(["git", "webdav"]), required=True, help="The door it opens, and no other.")
@click.option("--paths", "paths", multiple=True, metavar="PATTERN", help="What it reaches at most; repeatable. Without it: everything.")
@click.option("--read-only", is_flag=True, help="It lists and reads, and changes nothing.")
@click.option("--ttl", metavar="DURATION", help="How long it counts, such as 30d; without it until it is revoked.")
@click.option("--label", help="The program it is for.")
@click.option("--principal", help="Whose it is; without it, of whoever runs this.")
def command(
    session: Session, door: str, paths: tuple[str, ...], read_only: bool, ttl: str | None, label: str | None, principal: str | None
) -> None:
    """Make a password for one program. It is printed this once.

    It never gives more than the policy gives the person, and administers nothing.
    """
    body = {"for": door, "paths": list(paths) or None, "read_only": read_only, "ttl": ttl, "label": label, "principal": principal}
    document = session.client.post("/v1/app-passwords", body)
    made = document["app_password"]
    require_secret(document, made, f"nas app-password revoke {made}")
    session.show_fields(document, "app_password", "for", "paths", "actions", "expires", "url", "user", "secret")

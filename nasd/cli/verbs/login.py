"""``nas login``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from interfaces.faults import Fault, Kind
from nasd.cli.session import Session, require_secret, verb

METADATA = "/.well-known/oauth-protected-resource"


@verb
@click.option("--issuer", "name", help="The issuer, by its name in the settings; needed where there are several.")
@click.option("--device", is_flag=True, help="Log in on another device, with a code; for machines without a browser.")
@click.option("--no-browser", is_flag=True, help="Print the address instead of opening it.")
@click.option("--ttl", metavar="DURATION", help="How long the login counts: 12h at most, which is also the default.")
@click.option("--to", "target", type=click.Path(path_type=Path), help="The file for the token, instead of the one in the user's settings.")
def command(session: Session, name: str | None, device: bool, no_browser: bool, ttl: str | None, target: Path | None) -> None:
    """Log in by an issuer of the settings.

    The token lands in a file that only you can read; NAS_TOKEN_FILE=FILE has `nas` and programs act with it.
    """
    from nasd.identities.login import by_browser, by_device, find_portal
    from nasd.setup import write_secret

    portal = find_portal(_declared(session, name))
    if device:
        token = by_device(portal, lambda url, code: session.say(f"Open {url} and confirm the code {code}"))
    else:
        token = by_browser(portal, _opener(session, no_browser))
    document = session.client_with(token).post("/v1/logins", {"ttl": ttl})
    require_secret(document, document["token"], f"nas token revoke {document['token']}")
    path = target or session.login_file
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_secret(path, document["secret"])
    told: dict[str, Any] = {name: document[name] for name in ("token", "principal", "expires")} | {"file": str(path.absolute())}
    session.show_fields(told, *told)


def _declared(session: Session, name: str | None) -> dict[str, Any]:
    """Return the issuer to log in by, as the appliance declares it. Raises `Kind.INVALID`, `Kind.NOT_FOUND`."""
    known = {each["name"]: each for each in session.client_with(None).get(METADATA)["issuers"]}
    if name is None and len(known) == 1:
        return dict(next(iter(known.values())))
    if name not in known:
        raise Fault(
            Kind.INVALID if name is None else Kind.NOT_FOUND,
            "several issuers are declared" if name is None else f"{name}: no such issuer",
            hint=f"--issuer with one of {', '.join(sorted(known))}",
        )
    return dict(known[name])


def _opener(session: Session, no_browser: bool) -> Any:
    def show(url: str) -> None:
        import webbrowser

        if no_browser or not webbrowser.open(url):
            session.say(f"Open this address in a browser of this machine:\n{url}")

    return show

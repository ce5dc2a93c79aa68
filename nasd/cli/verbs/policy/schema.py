"""``nas policy schema``."""

from __future__ import annotations

import json

from nasd.cli.session import Session, verb


@verb
def command(session: Session) -> None:
    """Print the JSON Schema of policy documents.

    Editors check and complete a policy with it. Needs no daemon.
    """
    from nasd.offline import schema

    document = schema()
    session.show(document, lambda: print(json.dumps(document, indent=2)))

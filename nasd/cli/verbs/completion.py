"""``nas completion``."""

from __future__ import annotations

import click

from nasd.cli.session import Session, verb


@verb
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(session: Session, shell: str) -> None:
    """Print what a shell needs to complete `nas`.

    For example: eval "$(nas completion bash)".
    """
    from click.shell_completion import get_completion_class

    from nasd.cli.tree import make_root

    cls = get_completion_class(shell)
    if cls is None:
        raise click.UsageError(f"no completion for {shell}")
    source = cls(make_root(), {}, "nas", "_NAS_COMPLETE").source()
    session.show({"shell": shell, "source": source}, lambda: print(source))

"""What a client of a door needs to use a lease, as settings and as text to paste. Pure.

1. The text can be pasted into a shell, or into the file it names. A secret never becomes an argument of a process: it is exported, read
   from standard input, or written into a file by a word of the shell itself.
2. Settings carry the same values by their own names, for programs.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from interfaces.port import Document

REGION = "local"
"""The region to say; the server takes any. One that Amazon lacks makes clients sign addresses in version 4, the only one taken."""


def s3_settings(endpoint: str, bucket: str, access_key: str, secret: str, session_token: str) -> Document:
    """Return the settings of an S3 client; an empty `session_token` means that the key pair needs none."""
    exports = {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret,
        **({"AWS_SESSION_TOKEN": session_token} if session_token else {}),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
    lines += ["", "# aws s3 ls s3://" + bucket, "# aws s3 cp FILE s3://" + bucket + "/"]
    return {"url": endpoint, "settings": exports | {"bucket": bucket}, "text": "\n".join(lines) + "\n"}


def mcp_settings(url: str, secret: str) -> Document:
    """Return the settings of an MCP client over streamable HTTP."""
    server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {secret}"}}
    return {"url": url, "settings": server, "text": json.dumps({"mcpServers": {"agent-nas": server}}, indent=2) + "\n"}


def mount_settings(run: str, credential: str) -> Document:
    """Return what mounts a run's branch, and does nothing else: a file that only its owner reads, and the command that is given it."""
    text = f"(umask 077 && printf '%s\\n' {shlex.quote(credential)} > {run}.mount)\nnas mount --lease-file {run}.mount {run} DIRECTORY\n"
    return {"url": "", "settings": {"credential": credential}, "text": text}


def basic_settings(door: str, doors: Mapping[str, str], branch: str, user: str, password: str) -> Document:
    """Return the settings of a git or WebDAV client (HTTP Basic)."""
    settings = {"user": user, "password": password}
    if door == "git":
        url = f"{doors['git']}{quote(branch)}.git"
        return {"url": url, "settings": settings, "text": _git_text(url, user, password)}
    url = f"{doors['webdav']}{quote(branch)}/"
    return {"url": url, "settings": settings, "text": _webdav_text(url, user, password)}


def _git_text(url: str, user: str, password: str) -> str:
    parts = urlsplit(url)
    lines = {"protocol": parts.scheme, "host": parts.netloc, "username": user, "password": password}
    fed = "".join(f"{name}={value}\\n" for name, value in lines.items())
    return (
        "git config --global credential.helper 'cache --timeout=86400'\n"
        f"printf '{fed}' | git credential approve\n"
        f"git clone {parts.scheme}://{user}@{parts.netloc}{parts.path}\n"
    )


def _webdav_text(url: str, user: str, password: str) -> str:
    return (
        f"# any client: {url} with this user and password\n"
        f"#   user      {user}\n"
        f"#   password  {password}\n"
        "# rclone:\n"
        f"export RCLONE_CONFIG_NAS_TYPE=webdav RCLONE_CONFIG_NAS_VENDOR=other RCLONE_CONFIG_NAS_URL={shlex.quote(url)}\n"
        f"export RCLONE_CONFIG_NAS_USER={shlex.quote(user)}\n"
        f"RCLONE_CONFIG_NAS_PASS=$(printf %s {shlex.quote(password)} | rclone obscure -) && export RCLONE_CONFIG_NAS_PASS\n"
        "# rclone lsf nas:\n"
    )

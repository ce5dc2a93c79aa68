"""The HTTP door: the whole API over loopback and a Unix socket."""

from interfaces.http.app import Door
from interfaces.http.openapi import describe_api
from interfaces.http.serve import HttpServer
from interfaces.web.limits import Limits

__all__ = ["Door", "HttpServer", "Limits", "describe_api"]

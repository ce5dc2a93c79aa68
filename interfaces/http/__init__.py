"""The HTTP door: the whole API over loopback and a Unix socket."""

from interfaces.http.app import Door
from interfaces.http.limits import Limits
from interfaces.http.openapi import describe_api
from interfaces.http.serve import HttpServer

__all__ = ["Door", "HttpServer", "Limits", "describe_api"]

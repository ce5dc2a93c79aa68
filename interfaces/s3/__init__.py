"""The S3 door: branches as buckets, files as objects, history as versions."""

from interfaces.s3.app import S3Door

__all__ = ["S3Door"]

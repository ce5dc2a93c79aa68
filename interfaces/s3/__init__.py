"""The S3 door: branches and snapshots as buckets, for the SDKs and tools that speak S3."""

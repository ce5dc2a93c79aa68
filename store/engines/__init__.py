"""The engines, each a folder with `probe() -> str | None` (why not here) and `open_engine(folder, role=..., clock=...) -> Engine`."""

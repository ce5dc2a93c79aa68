"""Options that every test may ask for."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--thorough``: the long form of tests that otherwise take a sample."""
    parser.addoption("--thorough", action="store_true", help="every step instead of a sample (hours instead of minutes)")


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Tell whether the long form was asked for."""
    return bool(request.config.getoption("--thorough"))

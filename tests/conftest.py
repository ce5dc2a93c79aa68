"""Options that every test may ask for.

Hypothesis draws the same examples on every run, so that what a change broke is what a red run shows; ``--thorough`` draws others each time.
No test is timed: a deadline would fail on a busy machine and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests import reasons
from trust.policy import decide

settings.register_profile("same", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("other", deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how examples are drawn."""
    settings.load_profile("other" if config.getoption("--thorough") else "same")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--thorough``: the long form of tests that otherwise take a sample."""
    parser.addoption("--thorough", action="store_true", help="every step instead of a sample (hours instead of minutes)")


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Tell whether the long form was asked for."""
    return bool(request.config.getoption("--thorough"))


@pytest.fixture(autouse=True)
def every_denial_has_a_reason() -> Iterator[None]:
    """Fail a test in which a decision that is not to allow lacks its reason, its rule, its place or a way on."""
    reasons.watch(decide)
    yield
    assert reasons.take() == []

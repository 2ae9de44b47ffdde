"""The tests of HTTP+SSE run on one event loop, which their peers share."""

import pytest

from tests.door import share_one_loop


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    share_one_loop(items, "sse")

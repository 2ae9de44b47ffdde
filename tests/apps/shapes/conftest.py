"""The tests of other systems' shapes run on one event loop, which the shared gateway and its upstreams share."""

import inspect

import pytest

from tests.door import share_one_loop


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    asking = [item for item in items if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)]
    share_one_loop(list(asking), "shapes")

"""The tests of asks once more, each request at the other of two replicas: not a line of them knows."""

from tests.asks.test_legacy_client import *  # noqa: F403
from tests.asks.test_modern_client import *  # noqa: F403
from tests.asks.test_subscriptions import *  # noqa: F403

"""How long the shared store takes is told by operation, and what it did not do."""

import pytest

from gateway.metrics import Histogram
from gateway.stores.base import StoreUnavailable
from gateway.stores.opening import open_store
from policies.settings_store import Store as Settings
from tests.ports import free_port
from tests.valkey import valkey


def counted(operations: Histogram) -> dict[tuple[str, str], float]:
    return {
        (sample.labels["operation"], sample.labels["error_type"]): sample.value
        for sample in operations.collect().samples
        if sample.name.endswith("_count")
    }


async def test_each_operation_is_counted_by_its_name() -> None:
    operations = Histogram("operations", "", "operation", "error_type")
    async with valkey() as url:
        store = open_store(Settings(url=url), operations)
        await store.set("k", b"v", 9)
        await store.get("k")
        await store.get("other")
        await store.incr("n", 9)
        await store.append("log", b"e", 9, 9)
        await store.read("log", "", 0)
        await store.read("log", "", 0.01)  # this one waits, which says nothing of the store
        await store.put_field("h", "f", b"v", 9)
        await store.put_field("h", "f", None, 9)
        await store.delete_if("k", b"v")
        await store.close()
    found = counted(operations)
    found.pop(("script", ""), None)
    assert found == {
        ("set", ""): 1,
        ("get", ""): 2,
        ("incr", ""): 1,
        ("append", ""): 1,
        ("xrange", ""): 1,
        ("put_field", ""): 2,
        ("delete_if", ""): 1,
    }


async def test_what_the_store_did_not_do_is_counted_apart() -> None:
    operations = Histogram("operations", "", "operation", "error_type")
    store = open_store(Settings(url=f"redis://127.0.0.1:{free_port()}"), operations)
    with pytest.raises(StoreUnavailable):
        await store.get("k")
    with pytest.raises(StoreUnavailable):  # at once: the breaker is open, and nobody was asked
        await store.get("k")
    await store.close()
    assert counted(operations) == {("get", "unavailable"): 1}


async def test_what_is_in_this_process_is_not_counted() -> None:
    operations = Histogram("operations", "", "operation", "error_type")
    store = open_store(None, operations)
    await store.set("k", b"v", 9)
    await store.close()
    assert counted(operations) == {}

"""The settings of a store: what may be written, what is said about a mistake, and that nothing shows a password."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.config_errors import dotted, problems
from gateway.summary import settings_lines
from policies.settings import Settings
from policies.settings_store import Address, address

KEY = "k1:" + "A" * 43
RIGHT = {
    "upstreams": {"weather": {"url": "http://127.0.0.1:9000/mcp"}},
    "routes": [{"path": "/mcp", "upstream": "weather"}],
    "keys": [KEY],
}

ADDRESSES = {
    "redis://127.0.0.1:6379/0": Address("single", False, (("127.0.0.1", 6379),), "", 0),
    "redis://cache": Address("single", False, (("cache", 6379),), "", 0),
    "redis://cache/": Address("single", False, (("cache", 6379),), "", 0),
    "rediss://cache.example.com:6380/2": Address("single", True, (("cache.example.com", 6380),), "", 2),
    "redis://[::1]:6379": Address("single", False, (("::1", 6379),), "", 0),
    "redis://[::1]": Address("single", False, (("::1", 6379),), "", 0),
    "redis+sentinel://a,b:26380/main": Address("sentinel", False, (("a", 26379), ("b", 26380)), "main", 0),
    "rediss+sentinel://a/main/3": Address("sentinel", True, (("a", 26379),), "main", 3),
    "redis+cluster://a:7000,b:7001": Address("cluster", False, (("a", 7000), ("b", 7001)), "", 0),
    "rediss+cluster://a": Address("cluster", True, (("a", 6379),), "", 0),
}


@pytest.mark.parametrize("url", ADDRESSES)
def test_a_url_names_what_is_there(url: str) -> None:
    assert address(url) == ADDRESSES[url]


def complaints(store: Any, **more: Any) -> list[str]:
    document = {**RIGHT, "store": store, **more}
    with pytest.raises(ValidationError) as raised:
        Settings.model_validate(document)
    return [f"{dotted(place)}: {message}" for place, message in problems(raised.value, {}, document)]


URL = "redis://127.0.0.1:6379"
SCHEMES = "redis://, rediss://, redis+sentinel://, rediss+sentinel://, redis+cluster://, rediss+cluster://"
PORT = "must name each host as host or host:port, for example 127.0.0.1"
MISTAKES: dict[str, tuple[Any, list[str]]] = {
    "no url": ({}, ["store.url: is missing; add it: `redis://HOST:PORT/DB` for one server"]),
    "text": (URL, ["store: must be a mapping, that is lines of key: value"]),
    "another scheme": ({"url": "http://cache"}, [f"store.url: must be {SCHEMES} and a host, or several"]),
    "no scheme": ({"url": "cache:6379"}, [f"store.url: must be {SCHEMES} and a host, or several"]),
    "no host": ({"url": "redis://"}, [f"store.url: {PORT}:6379"]),
    "a bad port": ({"url": "redis://cache:port"}, [f"store.url: {PORT}:6379"]),
    "port 0": ({"url": "redis+sentinel://a:0/main"}, [f"store.url: {PORT}:26379"]),
    "a password in the url": (
        {"url": "redis://user:hunter2@cache"},
        ["store.url: holds a user or password, which a log could show; write them as username and password"],
    ),
    "options in the url": (
        {"url": "redis://cache?ssl=1"},
        ["store.url: must end after the path; there is a setting for everything else"],
    ),
    "several hosts": (
        {"url": "redis://a,b"},
        ["store.url: names several hosts; write redis+cluster:// or redis+sentinel://, or one host"],
    ),
    "no service": (
        {"url": "redis+sentinel://a"},
        ["store.url: must end in the name that the Sentinels know, for example /mymaster"],
    ),
    "a named database": (
        {"url": "redis://a/main"},
        ["store.url: must end in the number of a database, for example /0, or without"],
    ),
    "a database of a cluster": (
        {"url": "redis+cluster://a/0"},
        ["store.url: must end after the hosts; a cluster has no numbered databases"],
    ),
    "TLS settings without TLS": (
        {"url": URL, "tls": {"ca": "ca.pem"}},
        ["store.tls: does nothing for a url without TLS; begin it with rediss, or remove tls"],
    ),
    "a key without a certificate": (
        {"url": "rediss://a", "tls": {"client_key": "key.pem"}},
        ["store.tls.client_key: belongs to a client_cert, which is missing; add it"],
    ),
    "a user without a password": (
        {"url": URL, "username": "gateway"},
        ["store.password: is missing; a user has a password: add it, or remove username"],
    ),
    "a Sentinel's password without Sentinels": (
        {"url": URL, "sentinel_password": "hunter2"},
        ["store.sentinel_password: does nothing without Sentinels; remove it"],
    ),
    "a prefix with a brace": (
        {"url": URL, "prefix": "{a}"},
        ["store.prefix: must be 1 to 64 letters, digits, dots, hyphens and underscores"],
    ),
    "no time": ({"url": URL, "timeout_ms": 1}, ["store.timeout_ms: must be at least 10"]),
    "an unknown key": ({"url": URL, "pasword": "hunter2"}, ['store.pasword: unknown key; did you mean "password"?']),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_said_with_its_field_and_the_fix(name: str) -> None:
    store, lines = MISTAKES[name]
    said = complaints(store)
    assert said == lines
    assert "hunter2" not in str(said)


def test_a_store_without_sealing_keys_is_refused() -> None:
    assert complaints({"url": URL}, keys=[]) == [
        "keys: is missing; processes that share a store open what others sealed: set keys (mcp-front-door keygen)"
    ]


def test_check_names_the_store_and_no_password() -> None:
    store = {"url": URL, "username": "gateway", "password": "hunter2"}
    settings = Settings.model_validate({**RIGHT, "store": store})
    assert "store redis://127.0.0.1:6379 as gateway, keys mcpfd:*" in list(settings_lines(settings))
    assert "hunter2" not in f"{settings!r} {settings.model_dump_json()} {list(settings_lines(settings))}"

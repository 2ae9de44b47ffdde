"""What may be configured of the cache, and what is refused with which words."""

from typing import Any

import pytest

from policies.settings import Settings
from tests.policies.test_settings import document, faults, route, upstream


def test_a_server_is_taken_at_its_word_and_no_caller_sees_anothers() -> None:
    settings = Settings.model_validate(document())
    kept = settings.upstreams["weather"].cache
    assert settings.cache.max_bytes == 64 * 1024**2
    assert settings.routes[0].cache
    assert kept.enabled
    assert not kept.trust_public
    assert (kept.lists_ttl_s, kept.reads_ttl_s, kept.scope) == (0, 0, "private")


@pytest.mark.parametrize(
    ("written", "place", "words"),
    [
        (upstream(cache={"lists_ttl": 1}), "upstreams.weather.cache.lists_ttl", "not permitted"),
        (upstream(cache={"lists_ttl_s": -1}), "upstreams.weather.cache.lists_ttl_s", "greater than or equal to 0"),
        (upstream(cache={"lists_ttl_s": 86401}), "upstreams.weather.cache.lists_ttl_s", "less than or equal to 86400"),
        (upstream(cache={"max_ttl_s": 0}), "upstreams.weather.cache.max_ttl_s", "greater than 0"),
        (upstream(cache={"scope": "shared", "lists_ttl_s": 1}), "upstreams.weather.cache.scope", "'private' or"),
        (upstream(cache={"scope": "public"}), "upstreams.weather.cache.scope", "without lists_ttl_s or reads_ttl_s"),
        (
            upstream(era="legacy", cache={"trust_public": True}),
            "upstreams.weather.cache.trust_public",
            "write scope: public",
        ),
        (
            upstream(cache={"enabled": False, "lists_ttl_s": 1}),
            "upstreams.weather.cache.enabled",
            "switches off what stands beside it",
        ),
        (document(cache={"max_bytes": -1}), "cache.max_bytes", "greater than or equal to 0"),
        (document(cache={"max_entry_bytes": 1023}), "cache.max_entry_bytes", "greater than or equal to 1024"),
        (route(upstream="weather", cache="off please"), "routes.0.cache", "valid boolean"),
    ],
)
def test_what_does_nothing_or_too_much_is_refused(written: dict[str, Any], place: str, words: str) -> None:
    found = faults(written)
    assert list(found) == [place]
    assert words in found[place]


@pytest.mark.parametrize(
    "written",
    [
        upstream(cache={"enabled": False}),
        upstream(cache={"lists_ttl_s": 60, "scope": "public"}),
        upstream(era="legacy", cache={"reads_ttl_s": 1.5, "stale_while_revalidate_s": 0, "stale_if_error_s": 0}),
        document(cache={"max_bytes": 0}),
        route(upstream="weather", cache=False),
    ],
)
def test_what_is_right_is_taken(written: dict[str, Any]) -> None:
    assert faults(written) == {}

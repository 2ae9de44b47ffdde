"""The cache among the settings: what of an upstream's answers may be kept, for how long, and how much of it.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual. What these settings
do is decided in `policies/cache.py`.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from policies.settings_base import Model, Problem


class Cache(Model):
    """What is kept of upstreams' answers to lists and to reads of resources, for all who may share them."""

    max_bytes: int = Field(default=67_108_864, ge=0, le=16 * 1024**3)
    """How much this process holds ready; beyond it, who holds most gives first. 0 switches the cache off everywhere. To
    16 GiB; each worker has its own."""
    store_max_bytes: int = Field(default=33_554_432, ge=0, le=16 * 1024**3)
    """How much this process keeps in the `store`; beyond it, who has most there gives first. From 0, where nothing is
    kept there, to 16 GiB. Each replica and each worker has its own, and sessions need room beside them; what a process
    has left there that has ended goes with its time."""
    max_entry_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=64 * 1024 * 1024)
    """The largest answer that is kept. From 1024 to 64 MiB."""
    compress_from_bytes: int = Field(default=4096, ge=256, le=64 * 1024 * 1024)
    """Answers of this size and more are compressed in the `store`. From 256 to 64 MiB."""


class UpstreamCache(Model):
    """What may be kept of this upstream's answers: by its own word (`ttlMs`, `cacheScope`), which servers of 2026-07-28
    give, or by yours."""

    enabled: bool = True
    """Whether anything is kept. With `false` every request goes to the upstream."""
    trust_public: bool = False
    """Whether what the upstream calls `public` is shared by all callers. Where it is not, and wherever a header of the
    caller's goes to the upstream, each caller has its own."""
    lists_ttl_s: float = Field(default=0.0, ge=0, le=86_400, allow_inf_nan=False)
    """For how long, in seconds, a list (`tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`) is
    fresh where the upstream does not say: servers with sessions never do. 0 keeps none. To 86400."""
    reads_ttl_s: float = Field(default=0.0, ge=0, le=86_400, allow_inf_nan=False)
    """The same of a resource that was read."""
    scope: Literal["private", "public"] = "private"
    """Who shares what is kept by `lists_ttl_s` and `reads_ttl_s`: `private` is each caller for itself; `public` is all
    callers, and the upstream must then answer all of them alike."""
    max_ttl_s: float = Field(default=3600.0, gt=0, le=86_400, allow_inf_nan=False)
    """The longest that an answer is fresh, in seconds, whatever the upstream says. To 86400."""
    stale_while_revalidate_s: float = Field(default=0.0, ge=0, le=3600, allow_inf_nan=False)
    """For how long, in seconds, an answer that is no longer fresh is still given while another is fetched. 0 waits for
    the new one. To 3600."""
    stale_if_error_s: float = Field(default=60.0, ge=0, le=86_400, allow_inf_nan=False)
    """For how long, in seconds, an answer that is no longer fresh is still given while the upstream fails. 0 gives the
    error. To 86400."""

    def misplaced(self, era: str) -> Iterator[Problem]:
        """Settings that do nothing."""
        if "scope" in self.model_fields_set and not (self.lists_ttl_s or self.reads_ttl_s):
            yield ("cache", "scope"), "does nothing without lists_ttl_s or reads_ttl_s; add one, or remove it"
        if self.trust_public and era == "legacy":
            yield ("cache", "trust_public"), "does nothing for era: legacy, without cacheScope; write scope: public"
        if not self.enabled and self.model_fields_set - {"enabled"}:
            yield ("cache", "enabled"), "switches off what stands beside it; keep one of the two"

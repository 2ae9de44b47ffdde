"""The settings of an upstream that is several endpoints: which one is asked, and which one is left out.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual. What these settings
do is decided in `policies/balance.py`.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from policies import wellformed
from policies.settings_base import Model

MAX_ENDPOINTS: Final = 64
"""Each is a label of metrics in every replica; what has more stands behind a load balancer of its own."""

Balance = Literal["least_requests", "round_robin"]


def _check_path(text: str) -> str:
    return wellformed.path(text) if text else text


class HealthCheck(Model):
    """How it is found out that an endpoint of `urls` is there. Only endpoints that were taken out of service are
    checked, by a TCP connection; with `path`, all of them."""

    path: Annotated[str, AfterValidator(_check_path)] = ""
    """What is asked for by GET, on the endpoint's own host and port and with the upstream's `headers`. A status of 200
    to 299 means that the endpoint wants requests; any other, or none, takes it out of service until it is back, but
    for the sessions that live there."""
    interval_s: float = Field(default=5.0, ge=0.1, le=3600, allow_inf_nan=False)
    """How often, in seconds. From 0.1 to 3600."""


class Ejection(Model):
    """When an endpoint of `urls` that fails gets no more requests. Sessions that live there still go there."""

    failures: int = Field(default=5, ge=1, le=1000)
    """After how many failures in a row: no connection, a connection that breaks or is silent before an answer, or the
    status 502, 503 or 504. From 1 to 1000."""
    for_s: float = Field(default=10.0, ge=0.1, le=3600, allow_inf_nan=False)
    """For how long, in seconds; then until a check finds it there. Twice as long each time that it fails again soon
    after, up to 300. From 0.1 to 3600."""
    max_share: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    """At most this share of the endpoints is out at a time, but always one of several may be, and never the last. From
    0 (none ever) to 1."""

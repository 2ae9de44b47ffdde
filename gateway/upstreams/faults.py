"""What goes wrong with an upstream over HTTP, as an `UpstreamFault`: what the HTTP client raises, a refused credential.

No fault says an address, or a word of what came.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from policies.errors import ClientFault, UpstreamFault
from policies.settings import Upstream as UpstreamSettings

FOREIGN = (aiohttp.ClientError, TimeoutError, OSError)
"""What the HTTP client raises (TLS errors are OSErrors)."""


def reason(error: Exception) -> str:
    """What went wrong in one word, for metrics."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError() | ssl.SSLError():
            return "tls"
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return "connect"
        case TimeoutError():
            return "timeout"
        case _:
            return "broken"


def fault_of(error: Exception, name: str, kind: str = "upstream") -> UpstreamFault:
    """What went wrong, without addresses or content; whether the request can have been executed. `kind`: what the
    other side is called."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError() | ssl.SSLError():
            return UpstreamFault(f"{kind} {name}: its TLS certificate is not trusted", http=502, executed=False)
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return UpstreamFault(f"{kind} {name} cannot be reached", http=503, executed=False)
        case TimeoutError():
            return UpstreamFault(f"{kind} {name} did not answer in time", http=504)
        case aiohttp.ClientPayloadError():
            return UpstreamFault(f"{kind} {name} broke off its answer")
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError() | OSError():
            return UpstreamFault(f"{kind} {name} closed the connection without an answer")
        case _:
            return UpstreamFault(f"{kind} {name} does not speak HTTP as it should")


@contextmanager
def sending() -> Iterator[None]:
    """Whatever is sent in here. Raises `ClientFault` for a header that cannot be: nothing has gone out."""
    try:
        yield
    except aiohttp.ClientError:  # some are ValueErrors too
        raise
    except ValueError as error:  # a line end or another control character
        raise ClientFault("a header of this request cannot be sent on") from error


def unauthorized(name: str, settings: UpstreamSettings, status: int, challenge: str | None) -> UpstreamFault:
    """A refused credential is the caller's to mend only where it was the caller's: then status and challenge pass."""
    if "authorization" not in (header.lower() for header in settings.forward_headers):
        return UpstreamFault(f"upstream {name} refuses the gateway's credentials (HTTP {status})", http=502)
    fault = UpstreamFault(f"upstream {name} refuses these credentials (HTTP {status})", http=status)
    if challenge is not None:
        fault.headers = (("WWW-Authenticate", challenge),)
    return fault

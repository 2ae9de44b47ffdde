"""TLS on the listener and towards upstreams: whom each side trusts, and what is said where it does not."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import issue
from tests.gateway_process import GatewayProcess, running
from tests.http_wire import DEADLINE_S, header_bytes
from tests.peers import ModernUpstream
from tests.raw_front import modern_headers, modern_request


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`ca`, `server` (for 127.0.0.1, localhost and inner.example), `client`, and `other`, which nobody trusts."""
    place = tmp_path_factory.mktemp("tls")
    ca = issue(place, "ca", None, authority=True)
    issue(place, "server", ca, names=["localhost", "inner.example"], address="127.0.0.1")
    issue(place, "client", ca)
    issue(place, "other", None, authority=True)
    return place


async def _status(gateway: GatewayProcess, context: ssl.SSLContext) -> int:
    front = gateway.front("/x")
    message = modern_request("tools/list")
    lines = {**front.posting(modern_headers(message)), "Host": "localhost", "Content-Length": "2"}
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(front.host, front.port, ssl=context, server_hostname="localhost")
        writer.write(header_bytes("POST /x HTTP/1.1", [(k, str(v)) for k, v in lines.items()]) + b"{}")
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return int(head.split(b" ")[1])


async def test_the_listener_serves_https_and_asks_for_client_certificates_where_told(folder: Path) -> None:
    tls = {"cert": str(folder / "server.pem"), "key": str(folder / "server.key")}
    trusting = ssl.create_default_context(cafile=folder / "ca.pem")
    async with ModernUpstream() as upstream, running({"x": upstream}, tls=tls) as gateway:
        assert gateway.url.startswith("https://")
        assert await _status(gateway, trusting) == 400
        with pytest.raises(ssl.SSLCertVerificationError):
            await _status(gateway, ssl.create_default_context())
    tls["client_ca"] = str(folder / "ca.pem")
    async with ModernUpstream() as upstream, running({"x": upstream}, tls=tls) as gateway:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await _status(gateway, trusting)
        trusting.load_cert_chain(folder / "client.pem", folder / "client.key")
        assert await _status(gateway, trusting) == 400


class TlsUpstream(ModernUpstream):
    """A modern upstream behind TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context

    async def start(self) -> None:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self._port, limit=2**20, ssl=self._context
        )

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}{self.path}"


SHOWN = {"client_cert": "client.pem", "client_key": "client.key"}


@pytest.mark.parametrize(
    ("tls", "served"),
    [
        ({"ca": "ca.pem", **SHOWN}, True),
        (
            {"ca": "ca.pem", **SHOWN, "server_name": "inner.example"},
            True,
        ),
        ({"ca": "ca.pem", **SHOWN, "server_name": "no.example"}, False),
        ({"ca": "other.pem", **SHOWN}, False),
        (SHOWN, False),
        ({"ca": "ca.pem", "client_cert": "other.pem", "client_key": "other.key"}, False),
        ({"ca": "ca.pem"}, False),
    ],
)
async def test_an_upstream_is_trusted_by_its_chain_and_name(folder: Path, tls: dict[str, str], served: bool) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.pem")
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    files = {key: str(folder / value) if "." in value and key != "server_name" else value for key, value in tls.items()}
    async with TlsUpstream(context) as upstream, running({"x": (upstream, {"tls": files})}) as gateway:
        answer = await gateway.front("/x").modern("tools/list")
        assert ("result" in answer.final) == served, repr(answer)
        assert bool(upstream.calls("tools/list")) == served
        if not served:
            assert answer.status in (502, 503)

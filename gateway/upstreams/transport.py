"""What a connector speaks through, whether there is Streamable HTTP under it, HTTP+SSE or a child process's pipes.

The form is HTTP's, since both eras describe themselves in it: POST carries one message, GET reads what belongs to no
request, DELETE ends a session. Specification: basic/transports of every revision. Which era is spoken is not known
here.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from gateway.upstreams.patience import USUAL, Patience
from gateway.upstreams.reading import Piece
from policies.errors import UpstreamFault
from policies.mcp import Json
from policies.settings import Limits
from policies.settings import Upstream as UpstreamSettings


class Reception(Protocol):
    """An answer whose head is there. `kind`: `sse` where messages come one by one."""

    status: int

    @property
    def endpoint(self) -> str:
        """The key of the endpoint that answered, empty where there are none to tell apart."""

    @property
    def cookie(self) -> str:
        """What it set, as the `Cookie` header of later requests in the session that it opened; empty for nothing."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def kind(self) -> Literal["json", "sse", "other"]: ...

    def pieces(self) -> AsyncIterator[Piece]:
        """The JSON-RPC messages of the answer as they come."""

    async def response(self) -> Json:
        """The JSON-RPC response in the answer. Raises `UpstreamFault` where there is none."""

    def refusal(self) -> UpstreamFault:
        """The fault that the status stands for, where there is no JSON-RPC body to say more."""


class Transport(Protocol):
    """`has_headers`: whether `Mcp-*` headers reach the upstream, so that it can compare them with the body itself."""

    name: str
    settings: UpstreamSettings
    limits: Limits
    has_headers: bool

    @property
    def endpoint_count(self) -> int: ...

    def known_endpoint(self, key: str, /) -> str:
        """The same key where there are several endpoints and this is one of them, else none: it need not matter then
        which one is asked."""

    def next_endpoint(self, tried: Collection[str] = (), /) -> str:
        """The key of the endpoint that is best asked next, or in place of those where a request was `tried` in vain;
        empty where there is none."""

    def request(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        patience: Patience = USUAL,
    ) -> AbstractAsyncContextManager[Reception]:
        """Sends one message; the block runs once the answer's head is there, and leaving it early calls the request
        off. Raises `UpstreamFault`."""

    def holder(self, session: str, /) -> str:
        """What of a session's id names the replica that alone can reach it (`Mail.elsewhere`); empty where each can."""

    async def retire(self) -> None:
        """Ends the long-lived streams with `UpstreamRetired`, and waits until nothing else is under way either."""

    async def close(self) -> None:
        """Lets go of everything; nothing is sent after."""

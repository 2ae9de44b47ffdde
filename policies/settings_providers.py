"""The settings of one LLM API behind the gateway: where it is, how it is spoken to, and whose key it gets.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual. Which paths lead to
it stands in `policies/settings_routes.py`; what is done with a request on its way is decided in
`policies/provider_http.py` and `policies/provider.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr, field_validator, model_validator

from policies import wellformed
from policies.settings_base import Model, Problem, hint, refuse
from policies.settings_edge import UpstreamTls
from policies.settings_routes import Route
from policies.settings_upstream import HeaderName, Seconds, checked_headers

CREDENTIAL_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""Where LLM APIs look for a key."""


def _url(text: str) -> str:
    url = wellformed.upstream_url(text)
    if urlsplit(url).query:
        raise ValueError('must not hold a query; leave out "?" and what follows, and put a key into key')
    return url.removesuffix("/")


class ProviderTimeouts(Model):
    """How long to wait for an LLM API, in seconds: each more than 0, at most 86400 (a day)."""

    connect_s: Seconds = 10.0
    """For a connection, the TLS handshake included."""
    first_byte_s: Seconds = 600.0
    """For the head of a response after the request has gone out. One that is not streamed comes when all of it is
    written, which takes minutes; the APIs' own clients wait for ten."""
    idle_s: Seconds = 300.0
    """Between two pieces of a response."""
    total_s: Seconds = 3600.0
    """For one request, from its head to the end of its response."""

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.first_byte_s > self.total_s:
            raise ValueError("first_byte_s must not exceed total_s, which ends the request first; raise total_s")
        return self


class Provider(Model):
    """One LLM API behind the gateway. What is sent to it by a route with `provider` is freed of what only hosts' users
    are meant to see (MCP Apps); its responses pass as they come."""

    dialect: Literal["anthropic", "openai", "gemini", "bedrock"]
    """How its requests are to be read: `anthropic` is the Messages API, `openai` Chat Completions and Responses (and
    all that speak like it: Azure, vLLM, Ollama), `gemini` the Gemini API, `bedrock` Amazon Bedrock's Converse."""
    url: Annotated[str, AfterValidator(_url)]
    """Where it is, http or https, without user, password, query or fragment. What follows a route's `path` is put
    behind it: with `https://api.anthropic.com`, a request to `/llm/anthropic/v1/messages` goes to `/v1/messages`
    there."""
    key: SecretStr | None = None
    """The key that it is sent, in the place where its dialect has it: `x-api-key` (`anthropic`), `x-goog-api-key`
    (`gemini`), else `Authorization: Bearer`. Whatever key a caller sends is then left out. If absent, the caller's own
    passes."""
    headers: Mapping[HeaderName, SecretStr] = {}
    """Headers sent with every request, in place of the caller's of the same name. Where one of them holds a credential,
    no key of the caller's is sent either."""
    keep_structured: bool = True
    """Whether the `structuredContent` of a tool's result is sent beside its content, where a host has put it into a
    conversation. With `false` it goes wherever the content stands, too."""
    timeouts: ProviderTimeouts = ProviderTimeouts()
    """How long to wait for it."""
    tls: UpstreamTls = UpstreamTls()
    """Whom to trust and what to show on an https `url`."""

    @field_validator("key", mode="after")
    @classmethod
    def _key(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None:
            wellformed.header_value(key.get_secret_value())
        return key

    @field_validator("headers", mode="after")
    @classmethod
    def _headers(cls, headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        return checked_headers(headers)

    @model_validator(mode="after")
    def _fit(self) -> Self:
        problems: list[Problem] = []
        if self.key is not None and self._place in {name.lower() for name in self.headers}:
            problems.append((("key",), f"is sent as {self._place}, which headers set as well; keep one of the two"))
        if self.tls != UpstreamTls() and not self.url.startswith("https:"):
            problems.append((("tls",), "does nothing for an http url; write https, or remove it"))
        refuse(problems)
        return self

    @property
    def _place(self) -> str:
        return {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}.get(self.dialect, "authorization")

    @property
    def own_headers(self) -> tuple[tuple[str, str], ...]:
        """`headers` and `key` in the clear, for the connector alone."""
        own = [(name, value.get_secret_value()) for name, value in self.headers.items()]
        if self.key is not None:
            key = self.key.get_secret_value()
            own.append((self._place, f"Bearer {key}" if self._place == "authorization" else key))
        return tuple(own)

    @property
    def has_credential(self) -> bool:
        """Whether it is sent a credential of the gateway's, and thus none of its callers'."""
        return self.key is not None or any(name.lower() in CREDENTIAL_HEADERS for name in self.headers)


def judge_provider_routes(
    routes: Sequence[Route], providers: Mapping[str, Provider], clients: Sequence[str]
) -> Iterator[Problem]:
    """What is wrong with the routes that lead to an LLM API: names that are not there, and a principal for callers who
    have one of their own."""
    for index, route in enumerate(routes):
        if route.provider is not None and route.provider not in providers:
            known = list(providers)
            fix = hint(route.provider, known) if known else "add it under providers"
            yield ("routes", index, "provider"), f'unknown provider "{route.provider}"; {fix}'
        if route.principal is None:
            continue
        if route.principal not in clients:
            fix = hint(route.principal, list(clients)) if clients else "add it under clients, or remove principal"
            yield ("routes", index, "principal"), f'unknown client "{route.principal}"; {fix}'
        elif not route.anonymous:
            why = "does nothing where callers have keys, which say who they are; set anonymous: true, or remove it"
            yield ("routes", index, "principal"), why

"""Asks across eras: a request of the server's on a stream ↔ an entry of an `InputRequiredResult`.

Specification: 2026-07-28 basic/patterns/mrtr, client/{elicitation,sampling,roots}; the same pages of 2025-11-25 and
before. What one form cannot carry is left out or refused here; who waits for whom is not known.
"""

from dataclasses import dataclass
from typing import Any

from policies.errors import Rejection
from policies.mcp import (
    ASK_CAPABILITY,
    INTERNAL_ERROR,
    META_PROGRESS_TOKEN,
    MISSING_CLIENT_CAPABILITY,
    PREFIX,
    Json,
    at_least,
)
from policies.translation.discover import can_ask
from policies.translation.messages import message_to_older, without_meta

CANCEL: Json = {"action": "cancel"}
"""The result of an elicitation that this client cannot be shown."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What an `InputRequiredResult` wants: asks by the server's own keys, and the state that goes back with them."""

    asks: dict[str, tuple[str, Json]]
    state: str | None


def needs(result: Json) -> Needs | Rejection:
    """Reads an `InputRequiredResult`. One that asks for nothing that a client could give is the server's fault."""
    requests, state = result.get("inputRequests"), result.get("requestState")
    asks: dict[str, tuple[str, Json]] = {}
    for key, entry in requests.items() if isinstance(requests, dict) else ():
        method = entry.get("method") if isinstance(entry, dict) else None
        if not isinstance(method, str) or method not in ASK_CAPABILITY:
            return Rejection(INTERNAL_ERROR, "the server asks for an input that is none of the protocol's", http=502)
        params = entry.get("params")
        asks[key] = (method, params if isinstance(params, dict) else {})
    if not asks and not isinstance(state, str):
        return Rejection(INTERNAL_ERROR, "the server needs input and does not say which", http=502)
    return Needs(asks, state if isinstance(state, str) else None)


# towards a legacy client


def ask_to_legacy(method: str, params: Json, version: str, capabilities: Json) -> Json | Rejection:
    """The request's parameters for a client of `version`, or why it cannot be put to this client; whether the server
    speaks 2026-07-28 or a later revision with sessions."""
    lacking = can_ask(method, params, capabilities)
    if lacking is not None:
        return Rejection(
            MISSING_CLIENT_CAPABILITY,
            f"the client does not support {method} as the server needs it",
            {"requiredCapabilities": lacking},
            400,
        )
    if method == "elicitation/create":
        return _elicitation_to_older(params, version)
    return _sampling_to_older(params, version, capabilities) if method == "sampling/createMessage" else params


def _elicitation_to_older(params: Json, version: str) -> Json | Rejection:
    """URL mode, tasks, titled and multiple choices are new in 2025-11-25; before, titles had a keyword of their own.
    Elicitation itself is new in 2025-06-18."""
    if at_least(version, "2025-11-25"):
        return params
    if not at_least(version, "2025-06-18"):
        return Rejection(INTERNAL_ERROR, f"{version} has no elicitation")
    if params.get("mode") == "url":
        return Rejection(INTERNAL_ERROR, f"{version} has no URL elicitation")
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    params = {k: v for k, v in params.items() if k not in ("mode", "task")}
    if not isinstance(schema, dict) or not isinstance(properties, dict):
        return params
    older = {}
    for name, one in properties.items():
        if isinstance(one, dict) and one.get("type") == "array":
            return Rejection(INTERNAL_ERROR, f"{version} has no multiple choice")
        older[name] = _titled_to_older(one)
    return {**params, "requestedSchema": {**schema, "properties": older}}


def _titled_to_older(schema: Any) -> Any:
    choices = schema.get("oneOf") if isinstance(schema, dict) else None
    if not isinstance(choices, list) or not all(isinstance(one, dict) and "const" in one for one in choices):
        return schema
    rest = {k: v for k, v in schema.items() if k != "oneOf"}
    names = [one.get("title", one["const"]) for one in choices]
    return {**rest, "enum": [one["const"] for one in choices], "enumNames": names}


def _sampling_to_older(params: Json, version: str, capabilities: Json) -> Json:
    sampling = capabilities.get("sampling")
    if "includeContext" in params and not (isinstance(sampling, dict) and "context" in sampling):
        params = {k: v for k, v in params.items() if k != "includeContext"}
    if at_least(version, "2025-11-25"):
        return params
    params = {k: v for k, v in params.items() if k != "task"}
    messages = params.get("messages")
    if not isinstance(messages, list):
        return params
    return {**params, "messages": [message_to_older(_unwrapped(message), version) for message in messages]}


def _unwrapped(message: Any) -> Any:
    """Before 2025-11-25 a message has one content block, not an array."""
    content = message.get("content") if isinstance(message, dict) else None
    return {**message, "content": content[0]} if isinstance(content, list) and len(content) == 1 else message


# towards a modern client


def ask_to_modern(method: str, params: Json) -> Json:
    """A live request as an entry of `inputRequests`: without what only a live request could use."""
    kept = {k: v for k, v in params.items() if k not in ("task", "elicitationId")}
    meta = kept.get("_meta")
    own = [key for key in meta if key.startswith(PREFIX)] if isinstance(meta, dict) else []
    kept = without_meta(kept, META_PROGRESS_TOKEN, *own)
    return {"method": method, "params": kept} if kept or method != "roots/list" else {"method": method}


def input_required(asks: dict[str, Json], state: str) -> Json:
    """The `InputRequiredResult` of this gateway for asks of a legacy server."""
    return {"resultType": "input_required", "inputRequests": asks, "requestState": state}


def url_asks(data: Any) -> dict[str, Json]:
    """What -32042 (2025-11-25 client/elicitation, URL Elicitation Required) wants shown, as elicitation parameters, by
    what makes it the same visit: its `elicitationId`, or the address where it has none."""
    elicitations = data.get("elicitations") if isinstance(data, dict) else None
    asks: dict[str, Json] = {}
    for one in elicitations if isinstance(elicitations, list) else ():
        if isinstance(one, dict) and isinstance(one.get("url"), str):
            known = one.get("elicitationId")
            params = {"mode": "url", **{k: one[k] for k in ("message", "url") if k in one}}
            asks.setdefault(known if isinstance(known, str) else one["url"], params)
    return asks

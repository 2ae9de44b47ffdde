"""Ordinary conversations go out byte for byte: over 200 of them, spread over the APIs, with and without a ledger."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from policies import provider
from policies.mcp import Json
from policies.provider import Known, body_digests, digest_tool
from tests.policies.conversations import APIS, SCHEMA, Api, mcp_text
from tests.policies.ordinary import DOCUMENTS, PAGE, PIXELS, TEXTS

IMAGES: dict[str, Any] = {
    "anthropic": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}],
    "chat": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXELS}"}}],
    "responses": [{"type": "input_image", "image_url": f"data:image/png;base64,{PIXELS}"}],
    "gemini": {"image": PIXELS, "text": "ui://"},
    "bedrock": [{"image": {"format": "png", "source": {"bytes": PIXELS}}}],
}


def bodies() -> Iterator[tuple[str, str, Json]]:
    """Which API, what its tool has answered, and the body."""
    for api, one in APIS.items():
        tools = [one.tool("look"), one.tool("fetch_ui")]
        for name, text in TEXTS.items():
            yield api, f"text: {name}", one.body(tools, [("look", one.text(text)), ("fetch_ui", one.text(text))])
        for name, document in DOCUMENTS.items():
            yield api, f"JSON in a string: {name}", one.body(tools, [("look", one.text(json.dumps(document)))])
        yield api, "an image", one.body(tools, [("look", IMAGES[api])])
    for name, document in DOCUMENTS.items():
        gemini, bedrock = APIS["gemini"], APIS["bedrock"]
        yield "gemini", f"JSON: {name}", gemini.body([gemini.tool("look")], [("look", document)])
        yield "bedrock", f"JSON: {name}", bedrock.body([bedrock.tool("look")], [("look", [{"json": document}])])
    for name, text in TEXTS.items():
        content = [mcp_text(text), {"type": "document", "source": {"type": "text", "data": text}}]
        yield "anthropic", f"the user: {name}", {"system": text, "messages": [{"role": "user", "content": content}]}
        yield "responses", f"the user: {name}", {"instructions": text, "input": text}


CORPUS = {f"{api}, {name}": (api, body) for api, name, body in bodies()}

KNOWN = Known(
    ui_bodies=body_digests(PAGE.replace("News", "App")),
    app_only=frozenset({digest_tool("poll", "d", SCHEMA), digest_tool("look", "another", SCHEMA), "poll"}),
    ui_tools=frozenset({"show", "chart"}),
)
"""What a ledger may know beside: interfaces, and tools of other conversations."""


def sent(one: Api, raw: bytes, known: Known, **how: Any) -> provider.Stripped:
    return provider.strip(provider.candidates(one.dialect, raw, one.path, **how), known)


def test_there_are_enough_of_them() -> None:
    assert len(CORPUS) > 200
    assert {api for api, _ in CORPUS.values()} == set(APIS)


@pytest.mark.parametrize("name", CORPUS)
def test_an_ordinary_body_goes_out_byte_for_byte(name: str) -> None:
    api, body = CORPUS[name]
    one = APIS[api]
    texts = [json.dumps(body), json.dumps(body, indent=2)]
    texts += [json.dumps(body, ensure_ascii=False, separators=(",", ":"))]
    for raw in [text.encode("utf-8", "surrogatepass") for text in texts]:
        if b"\xed\xa0" not in raw:  # half of a pair has no UTF-8
            for known, has_ledger in ((Known(), False), (Known(), True), (KNOWN, True)):
                done = sent(one, raw, known, has_ledger=has_ledger)
                assert done.body is raw
                assert done.removed == {}


@pytest.mark.parametrize("name", CORPUS)
def test_of_an_ordinary_body_with_something_to_take_out_the_rest_stays_byte_for_byte(name: str) -> None:
    api, body = CORPUS[name]
    raw = json.dumps({**body, "_meta": {"ui": 1}}).encode()
    assert sent(APIS[api], raw, KNOWN).body.decode() == json.dumps(body)

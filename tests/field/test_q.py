"""Field report Q1: an upstream's event stream is read in every legal framing, however the network cuts it."""

import json

import pytest

from tests.door import Door
from tests.field.pairs import ask_pair, every_pair
from tests.scripted import Call, Json

BYTE_ORDER_MARK = "\ufeff"
# Each is one whole stream around one response: {all} is its JSON, {head} and {tail} are that JSON cut between two
# members, where a line break is legal.
FRAMINGS: dict[str, str] = {
    "LF": "event: message\ndata: {all}\n\n",
    "CRLF": "event: message\r\ndata: {all}\r\n\r\n",
    "CR": "event: message\rdata: {all}\r\r",
    "all three line ends": "event: message\rdata: {all}\r\n\n",
    "no space after the colon": "event:message\ndata:{all}\n\n",
    "two spaces after the colon": "data:  {all}\n\n",
    "several data lines": "data: {head}\ndata:\ndata: {tail}\n\n",
    "several data lines, CRLF": "data: {head}\r\ndata: {tail}\r\n\r\n",
    "no event field": "data: {all}\n\n",
    "an empty event field": "event:\ndata: {all}\n\n",
    "a byte order mark": BYTE_ORDER_MARK + "data: {all}\n\n",
    "id and retry": "id: 7\nretry: 10\nevent: message\ndata: {all}\n\n",
    "an id without a value": "id\ndata: {all}\n\n",
    "an unknown field": "x-vendor: 1\ndata: {all}\nalone\n\n",
    "comments before, between and after": ": hello\n\ndata: {head}\n:\n: {{}}\ndata: {tail}\n\n: bye\n\n",
    "other events around it": 'event: ping\ndata: {{"id": 1}}\n\ndata: {all}\n\nevent: endpoint\ndata: /x\n\n',
    "an event without data first": "id: 1\nevent: message\n\nevent: message\ndata: {all}\n\n",
    "an empty data line first": "id: 1\ndata:\n\nevent: message\ndata: {all}\n\n",
    "blank lines everywhere": "\n\n\r\n\rdata: {all}\n\n\n\n",
    "the response and half an event after it": "data: {all}\n\ndata: {head}",
}
TEXT = "größe 日本 😀 \u2028 \\r\\n data: x"


def framed(name: str, call: Call, upstream_era: str) -> bytes:
    result: Json = {"content": [{"type": "text", "text": TEXT}], "structuredContent": {"n": 1}}
    if upstream_era == "modern":
        result["resultType"] = "complete"
    head = json.dumps({"jsonrpc": "2.0", "id": call.seen.id}, ensure_ascii=False)[:-1] + ","
    tail = '"result": ' + json.dumps(result, ensure_ascii=False) + "}"
    text = FRAMINGS[name].replace("{{", "\x00").replace("}}", "\x01")
    text = text.replace("{all}", head + tail).replace("{head}", head).replace("{tail}", tail)
    return text.replace("\x00", "{").replace("\x01", "}").encode()


@pytest.mark.field("Q1")
@every_pair
@pytest.mark.parametrize("name", FRAMINGS)
async def test_a_response_is_read_in_any_framing(door: Door, front_era: str, upstream_era: str, name: str) -> None:
    for size in (1, 2, 3, 7, 10_000):

        async def tool(call: Call, size: int = size) -> None:
            data = framed(name, call, upstream_era)
            await call.stream(content_type="text/event-stream; charset=utf-8")
            for at in range(0, len(data), size):
                await call.write(data[at : at + size])
            await call.end()

        door.upstream(upstream_era).on["tools/call"] = tool
        answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"}, ident="q")
        assert answer.final["id"] == "q"
        assert answer.ended, "the response comes to its proper end"
        assert answer.said == TEXT, size
        assert answer.result["structuredContent"] == {"n": 1}
        assert len(door.upstream(upstream_era).calls("tools/call")) == 1
        door.upstream(upstream_era).reset()


CUT_SHORT = {
    "no blank line at the end": "data: {all}\n",
    "no line end at the end": "data: {all}",
    "in the middle of the response": "data: {head}",
    "after one data line of two": "data: {head}\n",
    "no event at all": "",
    "comments only": ": hello\n\n",
    "only events of another kind": "event: ping\ndata: {all}\n\n",
    "only an event that is no JSON": "data: hello\n\n",
    "only an event that is no message": "data: 1\n\n",
}


@pytest.mark.field("Q1")
@every_pair
@pytest.mark.parametrize("name", CUT_SHORT)
async def test_a_stream_without_a_whole_response_is_an_error(
    door: Door, front_era: str, upstream_era: str, name: str
) -> None:
    async def tool(call: Call) -> None:
        result = {"content": [], "resultType": "complete"} if upstream_era == "modern" else {"content": []}
        message = {"jsonrpc": "2.0", "id": call.seen.id, "result": result}
        whole = json.dumps(message)
        head = whole[: whole.index(', "result"') + 1]
        await call.stream()
        await call.write(CUT_SHORT[name].replace("{all}", whole).replace("{head}", head).encode() or b": nothing\n\n")
        await call.end()

    door.upstream(upstream_era).on["tools/call"] = tool
    answer = await ask_pair(door, (front_era, upstream_era), "tools/call", {"name": "t"}, ident="q")
    assert answer.final["id"] == "q"
    assert "error" in answer.final, repr(answer)
    assert answer.ended
    if front_era == "legacy":
        assert answer.status == 200
    assert len(door.upstream(upstream_era).calls("tools/call")) == 1, "it may have been executed"


@pytest.mark.field("Q1")
@every_pair
async def test_a_letter_cut_by_the_network_is_put_together(door: Door, front_era: str, upstream_era: str) -> None:
    """Notifications too: the text of each is cut inside each of its letters."""
    steps = [f"Schritt {n}: größe 日本 😀" for n in range(3)]

    async def tool(call: Call) -> Json:
        await call.stream()
        for n, step in enumerate(steps):
            params = {"progressToken": call.seen.meta["progressToken"], "progress": n, "message": step}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            for byte in f"data: {json.dumps(note, ensure_ascii=False)}\r\n\r\n".encode():
                await call.write(bytes([byte]))
        return {"content": []}

    door.upstream(upstream_era).on["tools/call"] = tool
    params = {"name": "t", "_meta": {"progressToken": 5}}
    if front_era == "modern":
        answer = await door.front(upstream_era).modern("tools/call", {"name": "t"}, meta={"progressToken": 5})
    else:
        answer = await (await door.front(upstream_era).initialize()).request("tools/call", params)
    assert [note["params"]["message"] for note in answer.notes] == steps
    assert "result" in answer.final

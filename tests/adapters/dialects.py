"""How each provider's API says that it wants tools called, or says a text: whole, or as a stream.

Written from the providers' public API references. `answer(path, body, turn)` gives the content type and bytes of the
answer to one request. A turn is a list of tools to call, or the text to say.
"""

import json
import struct
import zlib
from typing import Any

from tests.scripted import Json

Turn = tuple[str, ...] | str
"""Tools to call, or what to say."""
ARGUMENTS: Json = {"rows": 3, "of": "größe"}
JSON, SSE, EVENTS = "application/json", "text/event-stream", "application/vnd.amazon.eventstream"


def answer(path: str, body: Json, turn: Turn, number: int) -> tuple[str, bytes]:
    """The answer to the request at `path`. `number`: of the request in its conversation, so that ids are told apart."""
    calls = turn if isinstance(turn, tuple) else ()
    text = turn if isinstance(turn, str) else ""
    ids = [f"call{number}x{place}" for place in range(len(calls))]
    stream = bool(body.get("stream"))
    if path.endswith("/v1/messages"):
        return _anthropic(calls, ids, text, number, stream=stream)
    if path.endswith("/chat/completions"):
        return _chat(calls, ids, text, number, stream=stream)
    if path.endswith("/responses"):
        return _responses(calls, ids, text, number, stream=stream)
    if path.endswith(":generateContent"):
        return JSON, _json(_gemini(calls, ids, text))
    if path.endswith(":streamGenerateContent"):
        chunks = [_gemini(calls[at : at + 1], ids[at : at + 1], text) for at in range(max(1, len(calls)))]
        return SSE, _events([(None, chunk) for chunk in chunks])
    if path.endswith("/converse"):
        return JSON, _json(_converse(calls, ids, text))
    if path.endswith("/converse-stream"):
        return EVENTS, b"".join(_frame(*event) for event in _converse_stream(calls, ids, text))
    raise AssertionError(f"no dialect has {path}")


def aside(path: str) -> Json | None:
    """The answer to a request that is no turn of a conversation: tokens are counted, a batch is taken."""
    if path.endswith("/count_tokens"):
        return {"input_tokens": 7}
    if path.endswith(":countTokens"):
        return {"totalTokens": 7}
    if path.endswith("/batches"):
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        dates = {"created_at": "2026-07-28T00:00:00Z", "expires_at": "2026-07-29T00:00:00Z"}
        ended = {"ended_at": None, "archived_at": None, "cancel_initiated_at": None, "results_url": None}
        state = {"id": "batch_1", "type": "message_batch", "processing_status": "in_progress", "request_counts": counts}
        return {**state, **dates, **ended}
    return None


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _events(events: list[tuple[str | None, Any]]) -> bytes:
    """A stream of server-sent events, each with its name where it has one."""
    return b"".join(
        (f"event: {name}\n".encode() if name else b"")
        + b"data: "
        + (value.encode() if isinstance(value, str) else _json(value))
        + b"\n\n"
        for name, value in events
    )


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _anthropic(calls: tuple[str, ...], ids: list[str], text: str, number: int, *, stream: bool) -> tuple[str, bytes]:
    blocks: list[Json] = [
        {"type": "tool_use", "id": ident, "name": name, "input": ARGUMENTS}
        for name, ident in zip(calls, ids, strict=True)
    ] or [{"type": "text", "text": text}]
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 7, "output_tokens": 7}
    whole = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "a-model", "usage": usage}
    if not stream:
        return JSON, _json({**whole, **stop, "content": blocks})
    events: list[Json] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "stop_sequence": None}}
    ]
    for index, block in enumerate(blocks):
        empty = {**block, "input": {}} if calls else {**block, "text": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        for half in _halves(json.dumps(ARGUMENTS) if calls else text):
            delta = (
                {"type": "input_json_delta", "partial_json": half} if calls else {"type": "text_delta", "text": half}
            )
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}}, {"type": "message_stop"}]
    return SSE, _events([(event["type"], event) for event in events])


def _chat(calls: tuple[str, ...], ids: list[str], text: str, number: int, *, stream: bool) -> tuple[str, bytes]:
    tool_calls = [
        {"id": ident, "type": "function", "function": {"name": name, "arguments": json.dumps(ARGUMENTS)}}
        for name, ident in zip(calls, ids, strict=True)
    ]
    reason = "tool_calls" if calls else "stop"
    common = {"id": f"chatcmpl-{number}", "created": 1785196800, "model": "a-model"}
    if not stream:
        message: Json = {"role": "assistant", "content": None if calls else text}
        if calls:
            message["tool_calls"] = tool_calls
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        usage = {"prompt_tokens": 7, "completion_tokens": 7, "total_tokens": 14}
        return JSON, _json({**common, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[Json] = [{"role": "assistant", "content": None if calls else ""}]
    for index, call in enumerate(tool_calls):
        first, second = _halves(json.dumps(ARGUMENTS))
        begun = {**call, "index": index, "function": {"name": calls[index], "arguments": first}}
        deltas += [{"tool_calls": [begun]}, {"tool_calls": [{"index": index, "function": {"arguments": second}}]}]
    deltas += [{"content": half} for half in _halves(text) if half]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": reason})
    chunks = [{**common, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    return SSE, _events([*((None, chunk) for chunk in chunks), (None, "[DONE]")])


def _responses(calls: tuple[str, ...], ids: list[str], text: str, number: int, *, stream: bool) -> tuple[str, bytes]:
    items: list[Json] = [
        {
            "type": "function_call",
            "id": f"fc_{ident}",
            "call_id": ident,
            "name": name,
            "arguments": json.dumps(ARGUMENTS),
            "status": "completed",
        }
        for name, ident in zip(calls, ids, strict=True)
    ]
    part: Json = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    if not calls:
        said = {"type": "message", "role": "assistant", "status": "completed"}
        items = [{**said, "id": f"msg_{number}", "content": [part]}]
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 7, "output_tokens": 7, "total_tokens": 14, **details}
    none = dict.fromkeys(("error", "incomplete_details", "instructions", "metadata"))
    common = {"id": f"resp_{number}", "object": "response", "created_at": 1785196800, "model": "a-model", **none}
    common |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "temperature": 1.0, "top_p": 1.0}
    whole = {**common, "status": "completed", "output": items, "usage": usage}
    if not stream:
        return JSON, _json(whole)
    begun = {**common, "status": "in_progress", "output": []}
    events: list[Json] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        empty = {**item, "status": "in_progress", **({"arguments": ""} if calls else {"content": []})}
        events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
        if calls:
            name = "response.function_call_arguments"
            events += [{"type": f"{name}.delta", **place, "delta": half} for half in _halves(item["arguments"])]
            events.append({"type": f"{name}.done", **place, "arguments": item["arguments"], "name": item["name"]})
        else:
            place |= {"content_index": 0}
            events.append({"type": "response.content_part.added", **place, "part": {**part, "text": ""}})
            for half in _halves(text):
                events.append({"type": "response.output_text.delta", **place, "delta": half, "logprobs": []})
            events.append({"type": "response.output_text.done", **place, "text": text, "logprobs": []})
            events.append({"type": "response.content_part.done", **place, "part": part})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return SSE, _events([(event["type"], {**event, "sequence_number": at}) for at, event in enumerate(events)])


def _gemini(calls: tuple[str, ...], ids: list[str], text: str) -> Json:
    parts: list[Json] = [
        {"functionCall": {"id": ident, "name": name, "args": ARGUMENTS}} for name, ident in zip(calls, ids, strict=True)
    ] or [{"text": text}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 7, "totalTokenCount": 14}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "a-model"}


def _converse(calls: tuple[str, ...], ids: list[str], text: str) -> Json:
    blocks: list[Json] = [
        {"toolUse": {"toolUseId": ident, "name": name, "input": ARGUMENTS}}
        for name, ident in zip(calls, ids, strict=True)
    ] or [{"text": text}]
    return {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {"inputTokens": 7, "outputTokens": 7, "totalTokens": 14},
        "metrics": {"latencyMs": 1},
    }


def _converse_stream(calls: tuple[str, ...], ids: list[str], text: str) -> list[tuple[str, Json]]:
    events: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"})]
    for index in range(max(1, len(calls))):
        place = {"contentBlockIndex": index}
        if calls:
            start = {"toolUse": {"toolUseId": ids[index], "name": calls[index]}}
            events.append(("contentBlockStart", {**place, "start": start}))
        for half in _halves(json.dumps(ARGUMENTS) if calls else text):
            delta: Json = {"toolUse": {"input": half}} if calls else {"text": half}
            events.append(("contentBlockDelta", {**place, "delta": delta}))
        events.append(("contentBlockStop", place))
    events.append(("messageStop", {"stopReason": "tool_use" if calls else "end_turn"}))
    usage = {"inputTokens": 7, "outputTokens": 7, "totalTokens": 14}
    return [*events, ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]


def _frame(event: str, payload: Json) -> bytes:
    """One message of Amazon's event stream: lengths, their checksum, headers, payload, checksum of it all."""
    named = {":message-type": "event", ":event-type": event, ":content-type": JSON}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        for name, value in named.items()
    )
    body = _json(payload)
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    checked = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return checked + struct.pack("!I", zlib.crc32(checked))

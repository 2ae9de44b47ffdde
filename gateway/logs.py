"""The one place where logging is set up: to standard error, as lines to read or as JSON for programs.

What a program raises may quote what it was given, so of an exception only its class and its frames are written, never
its words. No message of this project holds tokens, arguments, results or URIs either; fields come as `extra=fields(…)`.
"""

import asyncio
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import orjson

log = logging.getLogger(__name__)

_FIELDS: Final = "fields"
_SEPARATORS: Final = frozenset(' ="')
"""What separates members and values in a line to read."""

_QUIET: Final = ("asyncio", "aiohttp", "opentelemetry", "urllib3")
"""Loggers of libraries that are heard from `warning` on, whatever level is set: below, they say what they read."""


def fields(**members: str | float) -> dict[str, Any]:
    """The `extra` of a log call: members of their own in JSON, `key=value` in text. Empty ones are left out."""
    return {_FIELDS: {name: value for name, value in members.items() if value != ""}}


def configure(level: str, form: str, stream: TextIO | None = None) -> None:
    """Everything from `level` on goes to `stream` (standard error), once, as `text` or `json`."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Json() if form == "json" else Text())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)


def stray(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What no task or callback has caught, for the event loop: its own words would be those of what was raised."""
    error = context.get("exception")
    if error is None:
        log.error("%s", context["message"])
    else:
        log.error("nobody has caught", exc_info=error)


class Text(logging.Formatter):
    """`2026-07-28T09:00:00.123Z WARNING gateway.app: message key=value`, and below it an exception's frames."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}"
        extra = getattr(record, _FIELDS, None)
        if extra:
            line += "".join(f" {name}={_word(value)}" for name, value in extra.items())
        line = line.replace("\r", "\\r").replace("\n", "\\n")  # one record is one line
        return f"{line}\n{_frames(record)}" if record.exc_info else line


class Json(logging.Formatter):
    """One object a line: `time`, `level`, `logger`, `message`, the record's fields, `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        members: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **(getattr(record, _FIELDS, None) or {}),
        }
        if record.exc_info:
            members["exception"] = _frames(record)
        return orjson.dumps(members, option=orjson.OPT_NON_STR_KEYS, default=str).decode()


def _word(value: object) -> object:
    """A value that reads as one: in quotes where it could be taken for several."""
    return orjson.dumps(value).decode() if isinstance(value, str) and not _SEPARATORS.isdisjoint(value) else value


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _frames(record: logging.LogRecord) -> str:
    """An exception and what led to it: classes and frames, without what they say."""
    parts = []
    assert record.exc_info is not None
    error = record.exc_info[1]
    while error is not None:
        lines = ["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__)]
        parts.append("".join(lines) + f"{type(error).__module__}.{type(error).__qualname__}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n\n".join(reversed(parts))

"""Fills `${NAME}` from the environment and `file:PATH` from files into the values of a configuration document.

    ${NAME}            the variable; an error where it is not set
    ${NAME:-default}   the default where it is not set or empty
    $${                a literal "${"
    file:PATH          the file's text without its last line break; only as a whole value, and only where a secret may
                       stand (elsewhere `file:` may well begin a resource's URI)

What comes out of a variable or a file is never looked at again, and the place it went to is remembered, so that errors
can name the placeholder instead of the value. Which settings exist is not known here, but for where secrets stand.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Place = tuple[str | int, ...]

SECRET_PLACES: Final = (
    ("keys", "*"),
    ("admin_token",),
    ("store", "password"),
    ("store", "sentinel_password"),
    *(("upstreams", "*", *place) for place in (("url",), ("headers", "*"), ("env", "*"))),
    *(("providers", "*", *place) for place in (("key",), ("headers", "*"))),
)
MAX_SECRET_BYTES: Final = 64 * 1024
"""No credential is longer, and a path given by mistake (a device, a database) is not read into memory."""

_PLACEHOLDER: Final = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\})?")


@dataclass(slots=True)
class Filled:
    """A document with its placeholders filled."""

    value: Any = None
    origins: dict[Place, str] = field(default_factory=dict)
    """What was written in the document at each place whose value came from outside it."""
    problems: list[tuple[Place, str]] = field(default_factory=list)


def fill(document: Any, environ: Mapping[str, str], folder: Path) -> Filled:
    """`document` with every placeholder filled; relative paths of files start at `folder`."""
    filled = Filled()

    def walk(value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            return {key: walk(entry, (*place, key)) for key, entry in value.items()}
        if isinstance(value, list):
            return [walk(entry, (*place, index)) for index, entry in enumerate(value)]
        if not isinstance(value, str):
            return value
        try:
            text = _scalar(value, environ, folder if _holds_secret(place) else None)
        except ValueError as error:
            filled.problems.append((place, str(error)))
            return value
        if text != value:
            filled.origins[place] = value
        return text

    filled.value = walk(document, ())
    return filled


def _scalar(text: str, environ: Mapping[str, str], folder: Path | None) -> str:
    if folder is not None and text.startswith("file:"):
        return _read(folder / _expand(text.removeprefix("file:"), environ))
    return _expand(text, environ)


def _expand(text: str, environ: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        name, default = match["name"], match["default"]
        if name is None:
            raise ValueError(
                'holds "${" without a name and "}"; write ${NAME}, ${NAME:-default}, or $${ for the text "${"'
            )
        if default is not None:
            return environ.get(name) or default.removeprefix(":-")
        if name not in environ:
            raise ValueError(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
        return environ[name]

    return _PLACEHOLDER.sub(value, text)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_BYTES + 1)
    except OSError as error:
        raise ValueError(f"can't read the file {path}: {error.strerror}") from None
    if len(content) > MAX_SECRET_BYTES:
        raise ValueError(f"the file {path} is larger than {MAX_SECRET_BYTES} bytes and no secret")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError(f"the file {path} is not UTF-8 text") from None
    return text.removesuffix("\n").removesuffix("\r")


def _holds_secret(place: Place) -> bool:
    return any(
        len(place) == len(pattern) and all(part in {"*", step} for part, step in zip(pattern, place, strict=True))
        for pattern in SECRET_PLACES
    )

"""Loads the operator's configuration file into `Settings`, or says in one line each what is wrong and how to mend it.

The file is YAML with `${NAME}` and `file:PATH` placeholders (`gateway/placeholders.py`). What may be configured is
decided by `policies/settings.py`; nothing here knows what a setting does.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from gateway import tls_files, tracing
from gateway.config_errors import dotted, problems
from gateway.placeholders import fill
from gateway.yaml_file import YamlError, parse
from policies import wellformed
from policies.settings import Settings
from policies.settings_edge import UpstreamTls

_TLS_FILES: Final = ("cert", "key", "client_ca", "ca", "client_cert", "client_key")
SINGLE_UPSTREAM: Final = "upstream"
"""The name of the only upstream where it was given on the command line."""
SINGLE_PATH: Final = "/mcp"
_OPTIONS: Final[Mapping[tuple[str | int, ...], str]] = {
    ("listen",): "--listen",
    ("upstreams", SINGLE_UPSTREAM, "url"): "--upstream",
    ("upstreams", SINGLE_UPSTREAM, "command"): "COMMAND",
    ("upstreams", SINGLE_UPSTREAM, "era"): "--era",
}


class ConfigError(Exception):
    """A configuration that can't be served. `lines` has one problem each: `FILE: FIELD: what is wrong; what to do`."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


def load(path: Path, environ: Mapping[str, str]) -> Settings:
    """The settings in the file at `path`, its variables taken from `environ`. Raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError([f"{path}: can't be read: {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise ConfigError([f"{path}: is not UTF-8 text; save it as UTF-8"]) from None
    try:
        document = parse(text)
    except YamlError as error:
        raise ConfigError([f"{path}: {error}"]) from None
    if not isinstance(document, dict):
        what = "is empty" if document is None else "is no mapping"
        raise ConfigError([f"{path}: {what}; write at least upstreams: and routes: (see docs/configuration.md)"])
    filled = fill(document, environ, path.parent)
    found = list(filled.problems)
    unfilled = {place for place, _ in found}
    try:
        settings = Settings.model_validate(_beside(filled.value, path.parent))
    except ValidationError as error:
        faults = problems(error, filled.origins, filled.value)
        found += [(place, message) for place, message in faults if place not in unfilled]
    if not found:
        found += _tls_problems(settings)
        if settings.tracing.endpoint is not None and not tracing.HAS_OTEL:
            why = "needs what is not installed: pip install 'mcp-front-door[otel]', or remove it"
            found.append((("tracing", "endpoint"), why))
    if found:
        raise ConfigError(f"{path}: {dotted(place)}: {message}" for place, message in found)
    return settings


def _beside(document: Any, folder: Path) -> Any:
    """`document` with the files that its `tls` sections name looked for beside the configuration file."""
    if isinstance(document, dict):
        named = [document.get(kind) for kind in ("upstreams", "providers")]
        owners = [owner for members in named if isinstance(members, dict) for owner in members.values()]
        for owner in [document, document.get("store"), *owners]:
            tls = owner.get("tls") if isinstance(owner, dict) else None
            if not isinstance(tls, dict):
                continue
            for name in _TLS_FILES:
                if isinstance(tls.get(name), str) and tls[name]:
                    tls[name] = str(folder / tls[name])
    return document


def _tls_problems(settings: Settings) -> list[tuple[tuple[str | int, ...], str]]:
    found: list[tuple[tuple[str | int, ...], str]] = []
    try:
        if settings.tls is not None:
            tls_files.server_context(settings.tls)
    except tls_files.TlsError as error:
        found.append((("tls",), str(error)))
    try:
        if settings.store is not None:
            tls_files.client_context(settings.store.tls)
    except tls_files.TlsError as error:
        found.append((("store", "tls"), str(error)))
    named = [
        *((("upstreams", name, "tls"), upstream.tls) for name, upstream in settings.upstreams.items()),
        *((("providers", name, "tls"), provider.tls) for name, provider in settings.providers.items()),
    ]
    for place, tls in named:
        try:
            if tls != UpstreamTls():
                tls_files.client_context(tls)
        except tls_files.TlsError as error:
            found.append((place, str(error)))
    return found


def for_upstream(url: str, listen: str, era: str, **more: Any) -> Settings:
    """Settings that serve one upstream at `/mcp`. Raises `ConfigError`, whose lines name the option."""
    return _single({"url": url, "era": era, **more}, listen)


def for_command(command: Sequence[str], listen: str, era: str, environ: Mapping[str, str], **more: Any) -> Settings:
    """The same for a command, which gets the whole environment, as one that is typed into a shell does."""
    program, *arguments = command
    env = {name: value for name, value in environ.items() if wellformed.is_variable(name)}
    return _single({"command": program, "args": arguments, "env": env, "era": era, **more}, listen)


def _single(upstream: dict[str, Any], listen: str) -> Settings:
    document = {
        "listen": listen,
        "upstreams": {SINGLE_UPSTREAM: upstream},
        "routes": [{"path": SINGLE_PATH, "upstream": SINGLE_UPSTREAM}],
    }
    try:
        return Settings.model_validate(document)
    except ValidationError as error:
        found = problems(error, {}, document)
        raise ConfigError(f"{_OPTIONS.get(place, dotted(place))}: {message}" for place, message in found) from None


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the configuration file, for editors and other tools."""
    schema = Settings.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_with_placeholders(schema)}


def _with_placeholders(schema: Any) -> Any:
    """`schema` in which a number, boolean or choice may be a placeholder, which is filled before it is checked."""
    if isinstance(schema, list):
        return [_with_placeholders(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _with_placeholders(entry) for key, entry in schema.items()}
    if schema.get("type") in {"integer", "number", "boolean"} or "enum" in schema:
        about = {key: schema.pop(key) for key in ("title", "description", "default") if key in schema}
        return {**about, "anyOf": [schema, {"type": "string", "pattern": r"^\$\{"}]}
    return schema

"""Writes the generated parts of the manual: the settings of `docs/configuration.md` from the docstrings of
`policies/settings.py`, and the exit codes of `docs/commands.md` from `gateway/exit_codes.py`.

    python -m tests.tools.reference        (run it after a change; a test fails until it was run)
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gateway.exit_codes import MEANINGS
from policies.settings import Settings

DOCS: Final = Path(__file__).parents[2] / "docs"
MODELS: Final = (
    *("Settings", "ListenTls", "Connections", "Upstream", "HealthCheck", "Ejection", "UpstreamCache"),
    *("Timeouts", "ToolTimeouts", "UpstreamTls"),
    *("Route", "Rule", "Match", "Provider", "ProviderTimeouts", "Client", "ProfileSettings"),
    *("Limits", "Sessions", "Streams", "Cache", "Store", "StoreTls", "Log", "Metrics", "Tracing"),
)
TITLES: Final = {
    "Settings": "The file",
    "ListenTls": "`tls`",
    "Connections": "`connections`",
    "Upstream": "`upstreams.NAME`",
    "HealthCheck": "`upstreams.NAME.health`",
    "Ejection": "`upstreams.NAME.ejection`",
    "UpstreamCache": "`upstreams.NAME.cache`",
    "Timeouts": "`upstreams.NAME.timeouts`",
    "ToolTimeouts": "`upstreams.NAME.tools.PATTERN`",
    "UpstreamTls": "`upstreams.NAME.tls`",
    "Route": "`routes[]`",
    "Rule": "`routes[].rules[]`",
    "Match": "A match: `method`, `name` and each of `params`",
    "Provider": "`providers.NAME`",
    "ProviderTimeouts": "`providers.NAME.timeouts`",
    "Client": "`clients.NAME`",
    "ProfileSettings": "`profiles.NAME`",
    "Limits": "`limits`",
    "Sessions": "`sessions`",
    "Streams": "`streams`",
    "Cache": "`cache`",
    "Store": "`store`",
    "StoreTls": "`store.tls`",
    "Log": "`log`",
    "Metrics": "`metrics`",
    "Tracing": "`tracing`",
}


def settings_reference() -> str:
    """The tables of all settings, in Markdown."""
    schema = Settings.model_json_schema()
    models = {"Settings": schema, **schema["$defs"]}
    return "\n".join(line for name in MODELS for line in _section(name, models[name], schema["$defs"]))


def exit_codes() -> str:
    rows = [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def _section(name: str, model: dict[str, Any], models: dict[str, Any]) -> Iterator[str]:
    if "properties" not in model:  # a match, which may be a plain string as well
        model = next(option for option in model["anyOf"] if "properties" in option)
    yield f"### {TITLES[name]}\n"
    yield f"{_line(model['description'])}\n"
    yield "| setting | value | default | meaning |\n|---|---|---|---|"
    for key, field in model["properties"].items():
        value = _cell(_value(field, models))
        about = field.get("description") or models[field["$ref"].rpartition("/")[2]]["description"]
        yield f"| `{key}` | {value} | {_default(key, field, model)} | {_cell(_line(about))} |"
    yield ""


def _value(field: dict[str, Any], models: dict[str, Any]) -> str:
    """What may be written, in words."""
    options = [option for option in field.get("anyOf", [field]) if option.get("type") != "null"]
    field = {**field, **options[0]}
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return "`host:port`" if name == "Listen" else "a match" if name == "Match" else _linked(name)
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_value(field['items'], models)}"
    if field["type"] == "object":
        entries = field.get("additionalProperties") or next(iter(field["patternProperties"].values()))
        return f"mapping of names to {_value(entries, models)}"
    if field["type"] in {"integer", "number"}:
        low = f"{field['minimum']:.0f} to" if "minimum" in field else "more than 0, at most"
        return f"{field['type']}, {low} {field['maximum']:.0f}"
    return {"string": "string", "boolean": "`true` or `false`"}[field["type"]]


def _linked(name: str) -> str:
    title = TITLES[name]
    anchor = re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{anchor})"


def _default(key: str, field: dict[str, Any], model: dict[str, Any]) -> str:
    if key in model.get("required", ()):
        return "required"
    default = field.get("default")
    if isinstance(default, dict) and {"host", "port"} <= set(default):
        return f"`{default['host']}:{default['port']}`"
    if isinstance(default, dict) and default:
        return "as below"
    if default is None or default in ({}, [], ""):
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default:.0f}`" if isinstance(default, float) else f"`{default}`"


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def inserted(page: str, name: str, text: str) -> str:
    """`page` with `text` between the markers called `name`."""
    begin, end = f"<!-- generated: {name} -->", "<!-- end -->"
    head, _, rest = page.partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"{begin} ... {end} is missing")
    return f"{head}{begin}\n{text}\n{end}{tail}"


PAGES: Final = {
    DOCS / "configuration.md": ("settings", settings_reference),
    DOCS / "commands.md": ("exit codes", exit_codes),
}


def main() -> None:
    for path, (name, text) in PAGES.items():
        path.write_text(inserted(path.read_text(encoding="utf-8"), name, text()), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Configuration files as operators write them, and what they are told when one is wrong: a line each, with the path of
the field and the fix, and never a secret. What is right or wrong: `tests/policies/test_settings.py`."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gateway.config import ConfigError, for_upstream, json_schema, load
from gateway.yaml_file import YamlError, parse
from policies.settings import Settings
from policies.settings_routes import Match
from tests.tools import reference

RIGHT = """
upstreams:
  weather: {url: "http://127.0.0.1:9000/mcp"}
routes:
  - {path: /mcp, upstream: weather}
"""
DOCS = Path(__file__).parents[2] / "docs"


def written(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def complaints(folder: Path, text: str, environ: dict[str, str] | None = None) -> list[str]:
    """What is said about a file, each line without the file's name."""
    path = written(folder, text)
    with pytest.raises(ConfigError) as caught:
        load(path, environ or {})
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["is empty; write at least upstreams: and routes: (see docs/configuration.md)"]),
        ("- a", ["is no mapping; write at least upstreams: and routes: (see docs/configuration.md)"]),
        (
            "{}",
            [
                "upstreams: is missing; add it: The MCP servers behind the gateway, by name",
                "routes: is missing; add it: The public endpoints",
            ],
        ),
        (
            'upstreams: {weather: {ur: "http://a/"}}\nroutes: [{path: /, upstream: weather}]',
            ['upstreams.weather.ur: unknown key; did you mean "url"?'],
        ),
        (RIGHT + "lmits: {}", ['lmits: unknown key; did you mean "limits"?']),
        (RIGHT + "limits: {max_boddy: 1}", ['limits.max_boddy: unknown key; did you mean "max_body_bytes"?']),
        (RIGHT + "sessions: {zzz: 1}", ["sessions.zzz: unknown key; known: ttl_s"]),
        (RIGHT + "sessions: {ttl_s: 1}", ["sessions.ttl_s: must be at least 60"]),
        (RIGHT + "sessions: {ttl_s: 1.5}", ["sessions.ttl_s: must be a whole number"]),
        (RIGHT + "sessions: {ttl_s: a day}", ["sessions.ttl_s: must be a whole number"]),
        (RIGHT + "streams: {keep_alive_s: often}", ["streams.keep_alive_s: must be a number"]),
        (RIGHT + "streams: {keep_alive_s: 301}", ["streams.keep_alive_s: must be at most 300"]),
        (RIGHT + "limits: 5", ["limits: must be a mapping, that is lines of key: value"]),
        (RIGHT + "limits:", ["limits: is empty; give it a value or leave it out"]),
        (RIGHT + "keys: k1:abc", ["keys: must be a list, that is lines that start with - or [in, brackets]"]),
        (RIGHT + "keys: [12]", ["keys[0]: must be a string; put it into quotes"]),
        (RIGHT + "listen: 8080", ['listen: must be host:port, for example "127.0.0.1:8080"']),
        (
            "upstreams: {weather: {url: 'http://a/', era: moden, heal: 3}}\nroutes: [{path: /, upstream: weathr}]",
            ["upstreams.weather.era: must be auto, modern or legacy", "upstreams.weather.heal: must be true or false"],
        ),
        (
            RIGHT.replace("upstream: weather", "rules: [{name: x, upstream: b}], default: weathr"),
            [
                'routes[0].rules[0].upstream: unknown upstream "b"; known: weather',
                'routes[0].default: unknown upstream "weathr"; did you mean "weather"?',
            ],
        ),
        (
            "upstreams: {A b: {url: 'http://a/'}}\nroutes: [{path: /, upstream: A b}]",
            ["upstreams.A b: a name must be lower-case letters, digits and inner hyphens, at most 63 of them"],
        ),
        (
            "upstreams: {weather: {url: 'http://a/', timeouts: {connect_s: 0}}}\nroutes: []",
            [
                "upstreams.weather.timeouts.connect_s: must be more than 0",
                "routes: must hold at least one route; give it a path and an upstream",
            ],
        ),
    ],
)
def test_every_mistake_of_a_file_is_one_line_with_its_field_and_the_fix(
    tmp_path: Path, text: str, lines: list[str]
) -> None:
    assert complaints(tmp_path, text) == lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", 'line 3: the key "a" stands twice; keep one'),
        ("upstreams:\n  w: {url: a, url: b}\n", 'line 2: the key "url" stands twice; keep one'),
        (
            "listen: [::1]:8080\n",
            "line 1: expected the node content, but found ':'; put text that starts with a bracket",
        ),
        ("a: b: c\n", "line 1: mapping values are not allowed here; put a value that holds"),
        ("a:\n\tb: c\n", "line 2: found character '\\t' that cannot start any token; indent with spaces"),
        ("a: {b: c\n", "line 2: expected ',' or '}', but got '<stream end>'; close every bracket"),
        ("a: !python/name:os.system b\n", "line 1: could not determine a constructor for the tag"),
        ("a: 1\n---\nb: 1\n", "line 2: but found another document; keep one"),
        ("? [a]\n: b\n", "line 1: a key must be a plain string"),
        ("a: *b\n", "line 1: found undefined alias 'b'"),
        ("a: \x01\n", "holds a character that YAML does not allow"),
    ],
)
def test_a_file_that_is_no_yaml_is_told_by_its_line(tmp_path: Path, text: str, line: str) -> None:
    (found,) = complaints(tmp_path, text)
    assert found.startswith(line)


def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.yaml: can't be read: No such file or directory"):
        load(tmp_path / "absent.yaml", {})
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe4")
    with pytest.raises(ConfigError, match=r"latin\.yaml: is not UTF-8 text; save it as UTF-8"):
        load(tmp_path / "latin.yaml", {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("2026-07-28", "2026-07-28"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("9" * 5000, "9" * 5000),
        ("<<", "<<"),
        ("012", 12),
        ("-1", -1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
    ],
)
def test_scalars_are_what_yaml_1_2_says_they_are(text: str, value: Any) -> None:
    assert parse(f"a: {text}\n") == {"a": value}
    assert type(parse(f"a: {text}\n")["a"]) is type(value)


def test_keys_are_strings_and_aliases_are_filled_in() -> None:
    assert parse("1: a\ntrue: b\n~: c\n") == {"1": "a", "true": "b", "~": "c"}
    assert parse("a: &t {b: 1}\nc: *t\n") == {"a": {"b": 1}, "c": {"b": 1}}
    with pytest.raises(YamlError):
        parse("a: &t [*t")


def test_variables_and_files_are_filled_in_before_anything_is_checked(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("Bearer planted\r\n")
    path = written(
        tmp_path,
        """
listen: ${HOST:-127.0.0.1}:${PORT}
upstreams:
  weather:
    url: "http://${NOWHERE:-127.0.0.1}/${EMPTY:-mcp}"
    headers: {Authorization: "file:secret", X-Same: "file:${FOLDER}/secret", X-Text: "$${PORT} $5 $"}
routes:
  - {path: /mcp, rules: [{name: {prefix: "file:///a"}, upstream: weather}], default: weather}
limits: {max_depth: "${DEPTH}"}
""",
    )
    environ = {"PORT": "8081", "EMPTY": "", "DEPTH": "64", "FOLDER": str(tmp_path)}
    settings = load(path, environ)
    assert str(settings.listen) == "127.0.0.1:8081"
    weather = settings.upstreams["weather"]
    assert weather.url == "http://127.0.0.1/mcp"
    assert dict(weather.own_headers) == {
        "Authorization": "Bearer planted",
        "X-Same": "Bearer planted",
        "X-Text": "${PORT} $5 $",
    }
    assert settings.limits.max_depth == 64
    assert settings.routes[0].rules[0].name == Match(prefix="file:///a")


def test_what_a_variable_or_file_holds_is_not_filled_in_again(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("${OTHER}\n\n")
    text = RIGHT.replace('mcp"', 'mcp", headers: {A: "x${ONE}", B: "file:secret"}')
    with pytest.raises(ConfigError, match=r"headers\.B: holds a line break"):
        load(written(tmp_path, text), {"ONE": "file:secret"})
    (tmp_path / "secret").write_text("${OTHER}")
    settings = load(written(tmp_path, text), {"ONE": "file:secret"})
    assert dict(settings.upstreams["weather"].own_headers) == {"A": "xfile:secret", "B": "${OTHER}"}


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("${ABSENT}", "listen: the environment variable ABSENT is not set; set it, or write ${ABSENT:-default}"),
        ("${", 'listen: holds "${" without a name and "}"; write ${NAME}, ${NAME:-default}, or $${ for the text "${"'),
        (
            "${1}",
            'listen: holds "${" without a name and "}"; write ${NAME}, ${NAME:-default}, or $${ for the text "${"',
        ),
        ("file:address", 'listen: must be host:port with a port from 0 to 65535, for example "127.0.0.1:8080"'),
    ],
)
def test_a_placeholder_that_cannot_be_filled_is_told_with_the_fix(tmp_path: Path, value: str, line: str) -> None:
    assert complaints(tmp_path, f"{RIGHT}listen: '{value}'") == [line]


def test_a_secret_file_that_cannot_be_read_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"a" * 65537)
    (tmp_path / "latin").write_bytes(b"\xe4")
    text = f"{RIGHT}keys: ['file:absent', 'file:large', 'file:latin', 'file:.']"
    assert complaints(tmp_path, text) == [
        f"keys[0]: can't read the file {tmp_path}/absent: No such file or directory",
        f"keys[1]: the file {tmp_path}/large is larger than 65536 bytes and no secret",
        f"keys[2]: the file {tmp_path}/latin is not UTF-8 text",
        f"keys[3]: can't read the file {tmp_path}: Is a directory",
    ]


SECRET_ANYWHERE = [
    "listen: {}",
    "admin: {}",
    "keys: [{}]",
    "limits: {{max_depth: {}}}",
    "sessions: {{ttl_s: {}}}",
    "upstreams: {{weather: {{url: {}}}}}",
    "upstreams: {{weather: {{url: 'http://a/', era: {}}}}}",
    "upstreams: {{weather: {{url: 'http://a/', heal: {}}}}}",
    "upstreams: {{weather: {{url: 'http://a/', headers: {{X: {}}}}}}}",
    "upstreams: {{weather: {{url: 'http://a/', forward_headers: [{}]}}}}",
    "upstreams: {{weather: {{url: 'http://a/', timeouts: {{idle_s: {}}}}}}}",
    "routes: [{{path: {}, upstream: weather}}]",
    "routes: [{{path: /a, host: {}, upstream: weather}}]",
    "routes: [{{path: /a, upstream: {}}}]",
    "routes: [{{path: /a, rules: [{{name: x, upstream: {}}}], default: weather}}]",
    "routes: [{{path: /a, rules: {}, default: weather}}]",
    "routes: {}",
]


@pytest.mark.parametrize("place", SECRET_ANYWHERE)
def test_no_error_shows_what_a_variable_holds_wherever_it_was_put(tmp_path: Path, place: str) -> None:
    # a line break makes it wrong at every place
    own = place.partition(":")[0]
    document = parse(RIGHT) | parse(place.format("'${TOKEN}'"))
    lines = complaints(tmp_path, json.dumps(document), {"TOKEN": "planted\nwether"})
    assert lines[0].startswith(own)
    assert "planted" not in "".join(lines)
    assert "wether" not in "".join(lines)


def test_an_unknown_name_out_of_a_variable_is_told_by_the_variable(tmp_path: Path) -> None:
    text = RIGHT.replace("upstream: weather", 'upstream: "${NAME}"')
    assert complaints(tmp_path, text, {"NAME": "wether"}) == [
        'routes[0].upstream: unknown upstream "${NAME}"; did you mean "weather"?'
    ]


def test_unfilled_placeholders_and_other_mistakes_are_told_together(tmp_path: Path) -> None:
    assert complaints(tmp_path, RIGHT + "listen: ${ABSENT}\nadmin: 1\nzzz: 1") == [
        "listen: the environment variable ABSENT is not set; set it, or write ${ABSENT:-default}",
        'admin: must be host:port, for example "127.0.0.1:8080"',
        f"zzz: unknown key; known: {', '.join(sorted(Settings.model_fields))}",
    ]


def test_one_upstream_from_the_command_line_is_served_at_mcp() -> None:
    settings = for_upstream("http://127.0.0.1:9000/mcp", "127.0.0.1:0", "legacy")
    assert [(route.path, route.fallback) for route in settings.routes] == [("/mcp", "upstream")]
    assert settings.upstreams["upstream"].era == "legacy"
    assert str(settings.listen) == "127.0.0.1:0"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("ftp://a/", "127.0.0.1:0", "auto"), "--upstream: must be an http or https URL with a host"),
        (("http://a/", "127.0.0.1", "auto"), "--listen: must be host:port"),
        (("http://a/", "127.0.0.1:0", "old"), "--era: must be auto, modern or legacy"),
    ],
)
def test_a_wrong_option_is_told_by_its_name(arguments: tuple[str, str, str], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        for_upstream(*arguments)
    assert str(caught.value).startswith(line)


def manual_example() -> str:
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    return page.partition("```yaml\n")[2].partition("```")[0]


def readme_example() -> str:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    return page.partition("```yaml\n")[2].partition("```")[0]


@pytest.mark.parametrize("example", [manual_example, readme_example])
def test_the_examples_of_the_manual_are_right_and_fit_the_schema(tmp_path: Path, example: Any) -> None:
    (tmp_path / "secret").write_text("Bearer x\n")
    text = example().replace("/run/secrets/weather", "secret").replace("/run/secrets/harbour", "secret")
    load(written(tmp_path, text), {"SEALING_KEY": "k1:" + "A" * 43})
    jsonschema.Draft202012Validator(json_schema()).validate(parse(text))


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({"limits": {"max_depth": "${DEPTH}"}}, True),
        ({"limits": {"max_depth": "deep"}}, False),
        ({"limits": {"max_depth": 4}}, False),
        ({"zzz": 1}, False),
        ({"listen": "127.0.0.1:8080"}, True),
        ({"listen": 8080}, False),
        ({"routes": []}, False),
        ({"routes": [{"path": "/", "rules": [{"name": "x", "upstream": "weather"}], "default": "weather"}]}, True),
        ({"routes": [{"path": "/", "rules": [{"name": {"glob": "x"}, "upstream": "weather"}]}]}, True),
        ({"routes": [{"path": "/", "rules": [{"name": {}, "upstream": "weather"}]}]}, False),
    ],
)
def test_the_schema_for_editors_knows_the_shape_and_placeholders(more: dict[str, Any], fits: bool) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(parse(RIGHT) | more) is fits


@pytest.mark.parametrize("page", reference.PAGES, ids=lambda page: page.name)
def test_the_manual_says_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    name, generated = reference.PAGES[page]
    assert text == reference.inserted(text, name, generated()), "run: python -m tests.tools.reference"

"""The commands as a person runs them: what they print, where, and the exit code."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from gateway.config import json_schema
from gateway.demo.children import running
from policies.mcp import APPS_EXTENSION
from policies.settings_profiles import BUILT_IN
from policies.wellformed import sealing_key
from tests.http_wire import DEADLINE_S
from tests.peers import LegacyUpstream, ModernUpstream
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
START_S = 30.0
"""A cold start of Python with all imports on a busy machine."""
CONFIG = """
listen: 127.0.0.1:8080
admin: 127.0.0.1:9090
keys: ["k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]
upstreams:
  weather: {url: "http://127.0.0.1:9000/mcp?key=planted", headers: {Authorization: "Bearer planted"}}
  harbour: {url: "http://harbour.example.com/mcp", era: legacy}
routes:
  - {path: /mcp, upstream: weather}
  - path: /fleet/mcp
    host: mcp.example.com
    rules:
      - {method: tools/call, name: {prefix: tides_}, upstream: harbour}
      - {params: {Region: {glob: "us-*"}}, upstream: harbour}
    default: weather
"""


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


async def start(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=True,
    )


async def finish(process: asyncio.subprocess.Process) -> Done:
    try:
        async with asyncio.timeout(START_S):
            out, err = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


async def run(*arguments: str, cwd: Path | None = None) -> Done:
    return await finish(await start(*arguments, cwd=cwd))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("", "the following arguments are required: COMMAND; see: mcp-front-door --help"),
        ("servee", "argument COMMAND: invalid choice: 'servee'"),
        ("serve", "one of the arguments -c/--config --upstream is required; see: mcp-front-door serve --help"),
        ("serve -c a --upstream b", "argument --upstream: not allowed with argument -c/--config"),
        ("serve -c config.yaml --listen a:1", "--listen: goes with --upstream only; set it in config.yaml"),
        ("serve -c config.yaml --era modern", "--era: goes with --upstream only; set it in config.yaml"),
        ("serve -c absent.yaml", "absent.yaml: can't be read: No such file or directory"),
        ("serve --upstream ftp://a/", "--upstream: must be an http or https URL with a host, for example http://"),
        ("serve --upstream http://a/ --listen 80", "--listen: must be host:port"),
        ("serve --upstream http://a/ --era old", "argument --era: invalid choice: 'old'"),
        ("serve --", "one of the arguments -c/--config --upstream is required; see: mcp-front-door serve --help"),
        ("serve -c config.yaml -- cat", "-c/--config: not allowed with a command"),
        ("serve --upstream http://a/ -- cat", "--upstream: not allowed with a command"),
        ("serve --listen 80 -- cat", "--listen: must be host:port"),
        ("check -c config.yaml -- cat", 'a command after "--" goes with serve and stdio only'),
        ("stdio", "the following arguments are required: --upstream; see: mcp-front-door stdio --help"),
        ("stdio --upstream ftp://a/", "--upstream: must be an http or https URL with a host, for example http://"),
        ("stdio --upstream http://a/ -H planted", "--header: must be 'Name: value'"),
        ("stdio --upstream http://a/ -- cat", "--upstream: not allowed with a command"),
        ("stdio -H X:planted -- cat", "--header: goes with --upstream only"),
        ("check", "one of the arguments -c/--config --schema is required; see: mcp-front-door check --help"),
        ("check -c wrong.yaml", 'wrong.yaml: upstreams.weather.ur: unknown key; did you mean "url"?'),
        ("probe", "the following arguments are required: URL; see: mcp-front-door probe --help"),
        ("probe 127.0.0.1:9000", "URL: must be an http or https URL with a host"),
        ("probe http://a/ --timeout soon", "argument --timeout: must be a number of seconds above 0, at most 3600"),
        ("probe http://a/ -H planted", "--header: must be 'Name: value'"),
        ("probe http://a/ -H Mcp-Name:planted", "--header: Mcp-Name: is the protocol's own"),
        ("strip", "the following arguments are required: --dialect; see: mcp-front-door strip --help"),
        ("strip --dialect planets", "argument --dialect: invalid choice: 'planets'"),
        ("demo --listen 8080", "--listen: must be host:port"),
        ("keygen --client CI", "--client: must be lower-case letters, digits and inner hyphens"),
        ("keygen --client ci --id a", "argument --id: not allowed with argument --client"),
        ("keygen --id a.b", "--id: must be 1 to 16 letters, digits, _ or -"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line_and_ends_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "wrong.yaml").write_text(
        "upstreams: {weather: {ur: http://a/}}\nroutes: [{path: /, upstream: weather}]"
    )
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(line)
    assert err.count("\n") == 1
    assert "planted" not in err


@pytest.mark.parametrize("command", ["", "serve", "stdio", "check", "probe", "strip", "keygen", "demo"])
def test_every_command_says_what_it_does_and_lists_the_exit_codes(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: mcp-front-door {command}".rstrip())
    assert "exit codes:\n  0 " in text
    assert "\n  130 " in text


async def test_the_version_is_the_distributions() -> None:
    declared = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert await run("--version") == Done(0, f"mcp-front-door {declared[1]}\n", "")


async def test_check_says_what_becomes_of_requests_and_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    done = await run("check", "-c", "config.yaml", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "config.yaml: OK",
        "listen 127.0.0.1:8080, health and metrics on 127.0.0.1:9090",
        "/mcp -> weather: http://127.0.0.1:9000/mcp?..., era auto",
        "mcp.example.com/fleet/mcp",
        '  method "tools/call", name prefix "tides_" -> harbour: http://harbour.example.com/mcp, era legacy',
        '  param Region glob "us-*" -> harbour: http://harbour.example.com/mcp, era legacy',
        "  everything else -> weather: http://127.0.0.1:9000/mcp?..., era auto",
    ]


async def test_check_shows_what_a_command_runs_and_none_of_its_secrets(tmp_path: Path) -> None:
    entry = "{command: npx, args: [server, --key=planted], env: {TOKEN: planted}, scope: session}"
    (tmp_path / "config.yaml").write_text(f"upstreams: {{notes: {entry}}}\nroutes: [{{path: /mcp, upstream: notes}}]\n")
    done = await run("check", "-c", "config.yaml", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "/mcp -> notes: runs npx, session, era auto" in done.out
    assert "planted" not in done.out


async def test_check_shows_what_hosts_are_shown_at_most(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "upstreams: {a: {url: http://a/}}\n"
        "routes: [{path: /mcp, upstream: a, profile: desktop-apps-2026-01-26-v1, apps: advertise}]\n"
        f"clients: {{ci: {{keys: ['sha256:{64 * '0'}'], routes: [/mcp], profile: core-v1}}}}"
    )
    done = await run("check", "-c", "config.yaml", cwd=tmp_path)
    assert "/mcp -> a: http://a/, era auto, profile desktop-apps-2026-01-26-v1, apps advertise\n" in done.out
    assert "client ci: /mcp, profile core-v1\n" in done.out


async def test_check_notes_what_an_operator_may_not_have_meant(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "upstreams: {a: {url: http://a/}, b: {url: http://b/}}\nroutes: [{path: /mcp, upstream: a}]"
    )
    done = await run("check", "-c", "config.yaml", cwd=tmp_path)
    assert done.code == 0
    assert "note: upstreams.b: no route leads to it" in done.out
    assert "note: keys: none" in done.out


async def test_the_schema_is_printed_for_editors() -> None:
    done = await run("check", "--schema")
    assert (done.code, json.loads(done.out)) == (0, json_schema())


async def test_nobody_reading_the_output_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "check", "--schema"), stdout=write, stderr=asyncio.subprocess.PIPE
    )
    os.close(write)
    async with asyncio.timeout(START_S):
        _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")


async def test_a_key_is_new_each_time_and_has_the_id_that_was_asked_for() -> None:
    first, second, named = await asyncio.gather(run("keygen"), run("keygen"), run("keygen", "--id", "spring-1"))
    keys = [sealing_key(done.out.removesuffix("\n")) for done in (first, second, named)]
    assert [len(key) for _, key in keys] == [32, 32, 32]
    assert len({key for _, key in keys}) == 3
    assert re.fullmatch(r"k\d{8}", keys[0][0])
    assert keys[2][0] == "spring-1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
async def test_serve_says_where_it_listens_and_ends_with_0_when_told_to(number: signal.Signals) -> None:
    process = await start("serve", "--upstream", "http://127.0.0.1:9/mcp", "--listen", "127.0.0.1:0")
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        line = await process.stdout.readline()
    assert re.fullmatch(rb"listening on http://127\.0\.0\.1:[1-9]\d*\n", line)
    process.send_signal(number)
    done = await finish(process)
    assert done.code == 0
    assert "Traceback" not in done.err


async def test_an_address_that_is_taken_is_told_in_one_line_and_ends_with_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = await run("serve", "--upstream", "http://127.0.0.1:9/mcp", "--listen", address)
    assert (done.code, done.out) == (3, "")
    assert address in done.err
    assert done.err.count("\n") == 1


async def test_probe_tells_a_server_of_sessions_from_one_of_2026_07_28() -> None:
    async with running("sample", "harbour") as harbour, running("sample", "weather") as weather:
        legacy, modern = await asyncio.gather(run("probe", harbour, "--json"), run("probe", weather, "--json"))
        shown = await run("probe", harbour)
    assert (legacy.code, modern.code) == (0, 0)
    assert (json.loads(legacy.out)["eras"], json.loads(modern.out)["eras"]) == (["legacy"], ["modern"])
    assert json.loads(legacy.out)["versions"] == ["2025-11-25"]
    assert json.loads(modern.out)["versions"] == ["2026-07-28"]
    assert json.loads(modern.out)["serverInfo"]["name"] == "weather"
    assert set(json.loads(modern.out)["capabilities"]) == {"tools", "prompts", "resources"}
    assert list(json.loads(modern.out)["hosts"]) == list(BUILT_IN)
    assert f"```\n$ mcp-front-door probe http://127.0.0.1:9000/mcp\n{shown.out}```" in (
        ROOT / "docs" / "commands.md"
    ).read_text(encoding="utf-8")


ANSWERS = {
    # what it says of Apps, whether it lists any, what hosts that show Apps get
    "says so": (True, True, "negotiated"),
    "forgets to say so": (False, True, "degraded: lists tools with an interface"),
    "has none": (False, False, "degraded: the server does not name"),
}


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("answers", ANSWERS)
async def test_probe_asks_in_the_name_of_hosts_of_each_profile(era: str, answers: str) -> None:
    says, lists, apps = ANSWERS[answers]
    offers: dict[str, Any] = {"tools": {}, "extensions": {APPS_EXTENSION: {}} if says else {}}
    upstream = ModernUpstream(capabilities=offers) if era == "modern" else LegacyUpstream(capabilities=offers)
    async with upstream:
        if lists:
            meta = {"ui": {"resourceUri": "ui://map/view"}}
            upstream.on["tools/list"] = {"tools": [{"name": "map", "inputSchema": {}, "_meta": meta}]}
        done = await run("probe", upstream.url, "--json")
    hosts = json.loads(done.out)["hosts"]
    states = {name: [layer["state"] for layer in layers] for name, layers in hosts.items()}
    last = hosts[BUILT_IN[-1]][-1]
    assert states["core-v1"] == ["negotiated", "negotiated", "unavailable", "unavailable"]
    assert states["interactive-v1"] == ["negotiated", "negotiated", "negotiated", "unavailable"]
    assert states[BUILT_IN[-1]][:3] == ["negotiated", "negotiated", "negotiated"]
    assert f"{last['state']}: {last['detail']}".startswith(apps)
    assert [layer["layer"] for layer in hosts["core-v1"]][::3] == ["Protocol Connection", "Apps Host"]
    assert isinstance(upstream, ModernUpstream) or not upstream.live, "a session was left open"
    assert not upstream.calls("tools/call")


async def test_probe_says_what_an_older_server_cannot_carry() -> None:
    async with LegacyUpstream(version="2025-06-18", sessions=False) as upstream:
        done = await run("probe", upstream.url)
    assert "Protocol Connection degraded    asked for 2025-11-25, answered in 2025-06-18" in done.out
    assert "Interactive Host    degraded    2025-06-18 has no elicitation by url" in done.out


async def test_probe_of_nothing_ends_with_4_and_shows_no_query() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    done = await run("probe", f"{url}?key=planted")
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith(f"{url}: ")
    assert done.err.count("\n") == 1
    assert "planted" not in done.err


async def test_probe_of_a_web_server_ends_with_4() -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>"
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(page, "127.0.0.1", 0) as server:
        done = await run("probe", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
    assert (done.code, done.out) == (4, "")
    assert "no MCP endpoint" in done.err
    assert done.err.count("\n") == 1


async def test_ctrl_c_before_the_end_ends_with_130() -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        process = await start("probe", f"http://127.0.0.1:{port}/mcp", "--timeout", "600")
        async with asyncio.timeout(START_S):
            await asked.wait()
        process.send_signal(signal.SIGINT)
        done = await finish(process)
    assert done == Done(130, "", "")


async def test_the_demo_without_its_extra_says_what_to_install(tmp_path: Path) -> None:
    """Python is run without the site folder, on links to everything in it but the official SDK."""
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.match(r"mcp([._-](?!front)|$)", entry.name):
            (tmp_path / entry.name).symlink_to(entry)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-m", "gateway", "demo"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        cwd=tmp_path,
        start_new_session=True,
    )
    assert await finish(process) == Done(2, "", 'demo needs the extra: pip install "mcp-front-door[demo]"\n')


async def test_the_installed_command_is_the_same_program() -> None:
    command = Path(sys.executable).with_name("mcp-front-door")
    process = await asyncio.create_subprocess_exec(command, "--version", stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(DEADLINE_S):
        out, _ = await process.communicate()
    assert out.decode() == (await run("--version")).out

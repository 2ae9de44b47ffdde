"""The command line: `mcp-front-door serve | stdio | check | explain | probe | strip | keygen | demo`.

Every error is one line on stderr that names the option or field and the fix; exit codes are in `gateway/exit_codes.py`.
What the commands do lives elsewhere: this module reads arguments, calls, and turns known errors into lines and codes.
"""

import argparse
import asyncio
import base64
import hashlib
import importlib.metadata
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from gateway import app, exit_codes, explain_command, pipe
from gateway.config import ConfigError, for_command, for_upstream, json_schema, load
from gateway.profiles import built_in
from gateway.summary import probe_json, probe_lines, settings_lines
from gateway.upstreams.probe import probe
from gateway.workers.supervisor import Supervisor
from policies import provider, wellformed
from policies.errors import Fault
from policies.explanation import lines as explained_lines
from policies.identity import KEY_PREFIX
from policies.settings import Settings

DISTRIBUTION: Final = "mcp-front-door"
DEFAULT_LISTEN: Final = "127.0.0.1:8080"
MAX_WORKERS: Final = 64
"""One for each core of a large machine; more than that are rather spread over machines."""
DEMO_NEEDS: Final = (2, 3)
"""The first version of the official SDK (`mcp`) that the demo can run on: the first with both eras."""
_EXIT_CODES: Final = "exit codes:\n" + "\n".join(f"  {code:<4} {text}" for code, text in exit_codes.MEANINGS.items())


class UsageError(Exception):
    """Arguments that make no sense; the message is one line."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see: {self.prog} --help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # argparse takes "--" for its own, and not in every version alike: what stands after it is split off before
    end = given.index("--") if "--" in given else len(given)
    given, upstream_command = given[:end], given[end + 1 :]
    try:
        options = _parser(has_command=bool(upstream_command)).parse_args(given)
        options.upstream_command = upstream_command
        if upstream_command and options.run not in (_serve, _stdio):
            raise UsageError('a command after "--" goes with serve and stdio only')
        code: int = options.run(options)
        sys.stdout.flush()  # here, where it can fail in order
    except UsageError as error:
        return _fail(str(error), exit_codes.USAGE)
    except ConfigError as error:
        return _fail(str(error), exit_codes.USAGE)
    except app.CannotListen as error:
        return _fail(str(error), exit_codes.CANNOT_LISTEN)
    except app.CannotStart as error:
        return _fail(str(error), exit_codes.FAILED)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # `... | head`: nobody reads on, which is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.OK
    return code


def _fail(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _serve(options: argparse.Namespace) -> int:
    settings = _settings(options)
    make: Callable[[Settings], app.Server] = app.Gateway
    if options.workers > 1:
        _check_workers(options, settings)
        make = partial(Supervisor, count=options.workers)
    if options.config is None:
        return app.run(settings)
    return app.run(settings, options.config, lambda: load(options.config, os.environ), make)


def _check_workers(options: argparse.Namespace, settings: Settings) -> None:
    if not sys.platform.startswith("linux"):
        raise UsageError("--workers: more than 1 needs Linux, which spreads the connections of one address over them")
    if options.config is None:
        raise UsageError("--workers: more than 1 need a file (-c) with a store: and keys:, which they share")
    if settings.store is None:
        why = "more than 1 share what they know of sessions and calls in a store; set store.url, and keys"
        raise UsageError(f"--workers: {why}, in {options.config}")


def _settings(options: argparse.Namespace) -> Settings:
    if options.upstream_command:
        for option, value in (("-c/--config", options.config), ("--upstream", options.upstream)):
            if value is not None:
                raise UsageError(f"{option}: not allowed with a command")
        listen = options.listen or DEFAULT_LISTEN
        return for_command(options.upstream_command, listen, options.era or "auto", os.environ)
    if options.config is not None:
        for option, value in (("--listen", options.listen), ("--era", options.era)):
            if value is not None:
                raise UsageError(f"{option}: goes with --upstream only; set it in {options.config}")
        return load(options.config, os.environ)
    return for_upstream(options.upstream, options.listen or DEFAULT_LISTEN, options.era or "auto")


def _stdio(options: argparse.Namespace) -> int:
    """A host that launches this process has one session for as long as the process lives: an upstream session that is
    lost is replaced, since nobody could start another, and a command is this host's alone."""
    heals = options.era != "modern"
    if options.upstream_command:
        if options.upstream is not None:
            raise UsageError("--upstream: not allowed with a command")
        if options.header:
            raise UsageError("--header: goes with --upstream only")
        more = {"scope": "session", "heal": heals}
        settings = for_command(options.upstream_command, DEFAULT_LISTEN, options.era, os.environ, **more)
    else:
        headers = dict(_header(text) for text in options.header)
        settings = for_upstream(options.upstream, DEFAULT_LISTEN, options.era, headers=headers, heal=heals)
    return pipe.run(settings)


def _check(options: argparse.Namespace) -> int:
    if options.schema:
        print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
        return exit_codes.OK
    settings = load(options.config, os.environ)
    print(f"{options.config}: OK")
    for line in settings_lines(settings):
        print(line)
    return exit_codes.OK


def _explain(options: argparse.Namespace) -> int:
    settings = load(options.config, os.environ)
    try:
        body = explain_command.read_body(options.body)
    except ValueError as error:
        raise UsageError(f"--body: {error}") from None
    if body is not None and (options.method or options.name):
        raise UsageError("--method and --name: not allowed with --body, which says both")
    if options.client is not None and options.client not in settings.clients:
        known = ", ".join(sorted(settings.clients)) or "none"
        raise UsageError(f"--client: there is none of that name under clients; known: {known}")
    given = [_line(text) for text in options.header]
    more = {"path": options.path, "host": options.host, "client": options.client, "session": options.session}
    try:
        of = {"method": options.method, "name": options.name, "era": options.era, "body": body}
        request = explain_command.build(**of, given=given, **more)
    except ValueError as error:
        raise UsageError(str(error)) from None
    told = explain_command.run(settings, request)
    print(json.dumps(told, indent=2, ensure_ascii=False) if options.json else "\n".join(explained_lines(told)))
    return exit_codes.OK


def _line(text: str) -> tuple[str, str]:
    """A header as it would be sent, whatever it holds: what is wrong with it is for the explanation to say."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError("--header: must be 'Name: value', or 'Name:' to leave one out")
    return name.strip(), value.strip()


def _probe(options: argparse.Namespace) -> int:
    try:
        url = wellformed.upstream_url(options.url)
    except ValueError as error:
        raise UsageError(f"URL: {error}") from None
    headers = dict(_header(text) for text in options.header)
    try:
        report = asyncio.run(probe(url, headers=headers, timeout_s=options.timeout, profiles=built_in()))
    except Fault as fault:
        where = url.partition("?")[0]  # a query may hold a key
        return _fail(
            f"{where}: {fault.message}; check the URL, and whether the server runs", exit_codes.UPSTREAM_FAILED
        )
    print(probe_json(report) if options.json else "\n".join(probe_lines(report)))
    return exit_codes.OK


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise UsageError("--header: must be 'Name: value'")
    try:
        return wellformed.header_name(name.strip()), wellformed.header_value(value.strip())
    except ValueError as error:
        raise UsageError(f"--header: {name.strip()}: {error}") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError("must be a number of seconds above 0, at most 3600")
    return seconds


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_WORKERS):
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MAX_WORKERS}")
    return int(text)


def _strip(options: argparse.Namespace) -> int:
    """A filter: what it removed is told by its kind, never by what it was."""
    try:
        inspected = provider.candidates(
            options.dialect,
            sys.stdin.buffer.read(),
            options.path,
            has_ledger=False,
            keeps_structured=not options.drop_structured,
        )
        done = provider.strip(inspected)
    except provider.Unreadable as error:
        raise UsageError(f"standard input: {error}") from None
    sys.stdout.buffer.write(done.body)
    if options.verbose:
        lines = [f"{kind} {count}" for kind, count in done.removed.items()]
        print("\n".join(lines or ["nothing removed"]), file=sys.stderr)
    return exit_codes.OK


def _keygen(options: argparse.Namespace) -> int:
    if options.client is not None:
        return _client_key(options.client)
    key = base64.urlsafe_b64encode(secrets.token_bytes(wellformed.KEY_BYTES)).decode().rstrip("=")
    text = f"{options.id or f'k{datetime.now(UTC):%Y%m%d}'}:{key}"
    try:
        wellformed.sealing_key(text)
    except ValueError:
        raise UsageError("--id: must be 1 to 16 letters, digits, _ or -") from None
    print(text)
    return exit_codes.OK


def _client_key(name: str) -> int:
    """A client's key, which is shown here and nowhere again, and what the file recognises it by."""
    if not wellformed.is_name(name):
        raise UsageError("--client: must be lower-case letters, digits and inner hyphens, at most 63 of them")
    key = f"{KEY_PREFIX}{base64.urlsafe_b64encode(secrets.token_bytes(wellformed.KEY_BYTES)).decode().rstrip('=')}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    print(f"key      {key}")
    print(f'clients  {name}: {{keys: ["sha256:{digest}"], routes: [/mcp]}}')
    return exit_codes.OK


def _demo(options: argparse.Namespace) -> int:
    major_minor = tuple(int(part) for part in _version("mcp").split(".")[:2] if part.isdigit())
    if major_minor < DEMO_NEEDS:
        return _fail('demo needs the extra: pip install "mcp-front-door[demo]"', exit_codes.USAGE)
    if options.listen is not None:
        try:
            wellformed.host_port(options.listen)
        except ValueError as error:
            raise UsageError(f"--listen: {error}") from None
    command = [sys.executable, "-P", "-m", "gateway.demo"]  # -P: not a folder that happens to be named gateway
    command += ["--listen", options.listen] if options.listen else []
    command += ["--once"] if options.once else []
    sys.stdout.flush()
    if sys.platform == "win32":  # where exec returns to the shell at once
        return subprocess.run(command, check=False).returncode  # noqa: S603 -- our own module; it alone imports the SDK
    return os.execv(sys.executable, command)  # noqa: S606 -- as above


def _version(distribution: str) -> str:
    """The installed version of a distribution, empty where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _parser(*, has_command: bool = False) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=DISTRIBUTION,
        description="A gateway in front of MCP servers that speaks both eras of the protocol.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{DISTRIBUTION} {_version(DISTRIBUTION) or 'unknown'}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, about: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=_EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    sent = "send this with every request"
    serve = command("serve", "run the gateway until SIGTERM or Ctrl-C")
    serve.usage = (
        f"{DISTRIBUTION} serve (-c FILE [--workers N] | [--listen HOST:PORT] [--era ERA] "
        "(--upstream URL | -- COMMAND ARG...))"
    )
    source = serve.add_mutually_exclusive_group(required=not has_command)
    source.add_argument("-c", "--config", type=Path, metavar="FILE", help="configuration file (YAML)")
    source.add_argument("--upstream", metavar="URL", help="serve this one MCP server at /mcp, without a file")
    serve.add_argument("--listen", metavar="HOST:PORT", help=f"without a file (default {DEFAULT_LISTEN}; port 0: any)")
    serve.add_argument("--era", choices=["auto", "modern", "legacy"], help="without a file (default auto: found out)")
    about = "how many processes serve (default 1); more need a store and keys in the file"
    serve.add_argument("--workers", metavar="N", type=_workers, default=1, help=about)
    serve.set_defaults(run=_serve)

    pipe_end = command("stdio", "be an MCP server on standard input and output, for hosts that only launch commands")
    pipe_end.usage = f"{DISTRIBUTION} stdio [--era ERA] (--upstream URL [-H 'NAME: VALUE'] | -- COMMAND ARG...)"
    pipe_end.add_argument("--upstream", metavar="URL", required=not has_command, help="the MCP server to speak to")
    pipe_end.add_argument("--era", choices=["auto", "modern", "legacy"], default="auto", help="the server's")
    pipe_end.add_argument("-H", "--header", metavar="'NAME: VALUE'", action="append", default=[], help=sent)
    pipe_end.set_defaults(run=_stdio)

    check = command("check", "say whether a configuration file is right, and what it makes of requests")
    what = check.add_mutually_exclusive_group(required=True)
    what.add_argument("-c", "--config", type=Path, metavar="FILE", help="configuration file (YAML)")
    what.add_argument("--schema", action="store_true", help="print the JSON Schema of the file instead")
    check.set_defaults(run=_check)

    _explain_parser(command)

    ask = command("probe", "find out what an MCP server speaks, and what hosts of each profile get of it")
    ask.add_argument("url", metavar="URL", help="its MCP endpoint, for example http://127.0.0.1:9000/mcp")
    ask.add_argument("-H", "--header", metavar="'NAME: VALUE'", action="append", default=[], help=sent)
    ask.add_argument("--timeout", metavar="SECONDS", type=_seconds, default=5.0, help="for each request (default 5)")
    ask.add_argument("--json", action="store_true", help="print JSON")
    ask.set_defaults(run=_probe)

    strip = command("strip", "copy a request body for an LLM API, less what its host was only to show")
    strip.add_argument("--dialect", choices=provider.DIALECTS, required=True, help="whose API it is for")
    about = "where it goes, for example /v1/messages; needed only where one API has several forms"
    strip.add_argument("--path", metavar="PATH", default="", help=about)
    about = "leave out a result's structuredContent where its content stands, too"
    strip.add_argument("--drop-structured", action="store_true", help=about)
    strip.add_argument("-v", "--verbose", action="store_true", help="say on standard error what was removed")
    strip.set_defaults(run=_strip)

    keygen = command("keygen", "make a sealing key for the keys of a configuration file, or a key for a client")
    kind = keygen.add_mutually_exclusive_group()
    kind.add_argument("--client", metavar="NAME", help="make a key for this client, and its entry under clients")
    kind.add_argument("--id", metavar="ID", help="its id, different for each key (default: k and today's date)")
    keygen.set_defaults(run=_keygen)

    demo = command("demo", "run the gateway before two sample servers, show all four pairings, then serve")
    demo.add_argument(
        "--listen", metavar="HOST:PORT", help=f"(default {DEFAULT_LISTEN}, or any port where it is taken)"
    )
    demo.add_argument("--once", action="store_true", help="end after the pairings instead of serving")
    demo.set_defaults(run=_demo)
    return parser


def _explain_parser(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    told = command("explain", "say what would happen to a request, rung by rung, without sending it")
    told.add_argument("-c", "--config", type=Path, metavar="FILE", required=True, help="configuration file (YAML)")
    told.add_argument("--method", metavar="METHOD", help="of JSON-RPC, for example tools/call (default tools/list)")
    told.add_argument("--name", metavar="NAME", help="the tool, prompt, resource URI or task")
    told.add_argument("--path", metavar="PATH", default="/mcp", help="(default /mcp)")
    told.add_argument("--host", metavar="HOST", help="what Host says (default: the first that is served)")
    about = "a header line in place of what a client would send; 'NAME:' leaves one out"
    told.add_argument("-H", "--header", metavar="'NAME: VALUE'", action="append", default=[], help=about)
    told.add_argument("--body", metavar="FILE", help="the whole body, - for standard input")
    told.add_argument("--client", metavar="NAME", help="the client whose key came with it, by its name under clients")
    told.add_argument("--session", metavar="ID", help="the Mcp-Session-Id (default for earlier revisions: assumed)")
    told.add_argument(
        "--era", choices=["legacy", "modern"], help="of the request (default modern, or as its body says)"
    )
    told.add_argument("--json", action="store_true", help="print JSON")
    told.set_defaults(run=_explain)

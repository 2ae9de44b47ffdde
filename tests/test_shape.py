"""The shape of `gateway` and `policies` as the design has it, and a proof that the checker sees each kind of breach."""

from pathlib import Path

import pytest

from tests.shape import IMPURE, Law, judge

ROOT = Path(__file__).parent.parent

# Within a package, imports go to a lower floor or stay on the same one.
# A file imports from its own floor or from those below; policies' floors lie below gateway's.
FLOORS = {
    f"{house}/{name}.py": floor
    for house, floors in {
        "policies": {
            1: "mcp errors wellformed settings_base settings_clients settings_routes settings_endpoints "
            "settings_profiles settings_cache affinity coding markup",
            2: "jsonrpc repeat sse settings_edge settings_store settings_upstream settings_observing "
            "settings_providers settings sealing exchange session request_state resumption task_ids profiles "
            "apps_marks presentation splice recent",
            3: "era headers identity inline peek restarts balance routing translation/discover "
            "translation/messages "
            "translation/subscriptions translation/mrtr translation/tasks apps_matrix cors edge forwarded http_sse "
            "apps cache cache_keys cache_entry cache_room cache_debts provider_errors provider_marks provider_heads "
            "provider_blocks provider_look provider_results provider_tools provider_shapes provider "
            "catalogue stripped explanation",
            4: "admission delivery metrics trace_context provider_http sightings status status_html",
        },
        "gateway": {
            1: "background yaml_file placeholders config_errors config exit_codes drain signals logs metrics tracing "
            "tls_files profiles "
            "stores/base stores/reader stores/memory stores/health stores/redis_clients stores/redis_errors "
            "stores/redis_subscriptions stores/redis stores/opening",
            2: "provider/ledger exchange parking stores/mail stores/held stores/changes stores/feeds stores/shared",
            3: "upstreams/base upstreams/patience upstreams/underway upstreams/faults upstreams/once "
            "upstreams/reading upstreams/endpoints upstreams/wire upstreams/transport upstreams/child "
            "upstreams/channel upstreams/rooms upstreams/stdio_reception "
            "upstreams/stdio upstreams/http_sse_line upstreams/http_sse "
            "upstreams/asking upstreams/schemas upstreams/shared_session upstreams/sessions "
            "upstreams/conversation upstreams/streams upstreams/listening upstreams/apps "
            "upstreams/counting upstreams/modern upstreams/legacy upstreams/probe upstreams/pool upstreams/states "
            "provider/line",
            4: "cache/shelf cache/marks cache/depot cache/watching cache/flights cache/filling cache/cache "
            "front/caching "
            "summary front/operation front/service front/elsewhere front/reply front/rounds front/gathering "
            "front/subscribing front/drive front/batch front/splice front/calls front/unread "
            "front/modern front/resuming front/lifecycle front/legacy "
            "front/hosting front/talk front/http_sse "
            "explaining/ahead explaining/modern explaining/legacy explaining/llm explaining/climb "
            "front/llm front/mcp front/repeats front/stdio front/pipes front/seeing front/status_page front/explained "
            "front/status front/port front/http front/body",
            5: "reload app pipe workers/messages workers/counts workers/worker workers/supervisor workers/__main__",
            6: "explain_command cli __main__",
            7: "demo/__main__ demo/children demo/front demo/harbour demo/leash demo/one_era demo/pairings demo/paste "
            "demo/sample demo/weather",
        },
    }.items()
    for floor, names in floors.items()
    for name in names.split()
}

# Files that may catch everything, and why: where an unknown failure becomes an answer, and the roots of tasks, above
# which nobody could catch anything.
CATCH_ALL: dict[str, str] = {
    "gateway/front/reply.py": "whatever a handler raises, its client gets an answer and the log an id",
    "gateway/exchange.py": "the root of an exchange's task",
    "gateway/stores/mail.py": "the root of the task that answers another replica: it gets an answer and the log an id",
    "gateway/reload.py": "the root of the watching task: whatever goes wrong in one reload, the next is tried",
    "gateway/front/talk.py": "the root of a request's task: whatever goes wrong, the client gets an answer",
}


def test_the_code_keeps_to_its_law() -> None:
    breaches = judge(ROOT, Law(FLOORS, CATCH_ALL))
    assert not breaches, "\n" + "\n".join(breaches)


CLEAN = {
    "policies/__init__.py": '"""Decides."""\n',
    "policies/low.py": "import re\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import json\n",
    "policies/high.py": "from policies import low\nfrom policies.low import re\n",
    "gateway/__init__.py": "",
    "gateway/bottom.py": "import asyncio\nfrom policies.high import low\n",
    "gateway/top.py": "import gateway.bottom\ntry:\n    import uvloop\nexcept ImportError:\n    uvloop = None\n",
    "gateway/root.py": "try:\n    pass\nexcept Exception:\n    pass\n",
}
LAW = Law(
    {
        "policies/low.py": 1,
        "policies/high.py": 2,
        "gateway/bottom.py": 1,
        "gateway/top.py": 2,
        "gateway/root.py": 1,
    },
    {"gateway/root.py": "a task root"},
)


def build(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_code_within_the_law_has_no_breach(tmp_path: Path) -> None:
    assert judge(build(tmp_path, CLEAN), LAW) == []


BREACHES = {
    **{
        f"policies import {module}": ("policies/low.py", f"import {module}\n", f"low.py:1 imports {module}, which")
        for module in sorted(IMPURE)
    },
    "policies import a part of it": ("policies/low.py", "import os.path\n", "imports os, which policies may not"),
    "policies import a name of it": ("policies/low.py", "from time import monotonic\n", "imports time, which"),
    "policies import it by a relative path": (
        "policies/low.py",
        "from ..gateway import top\n",
        "imports gateway, which",
    ),
    "policies import it for types": (
        "policies/low.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import aiohttp\n",
        "policies/low.py:3 imports aiohttp",
    ),
    "an upward import": ("gateway/bottom.py", "import gateway.top\n", "gateway/bottom.py:1 (floor 1) imports upward"),
    "an upward import of a name": (
        "gateway/bottom.py",
        "from gateway.top import x\n",
        "imports upward: gateway/top.py",
    ),
    "an upward import from the package": ("gateway/bottom.py", "from gateway import top\n", "imports upward"),
    "an upward relative import": (
        "policies/low.py",
        "from .high import x\n",
        "policies/low.py:1 (floor 1) imports upward",
    ),
    "an upward import for types": (
        "policies/low.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from policies.high import x\n",
        "policies/low.py:3 (floor 1) imports upward",
    ),
    "a circle of two": (
        "policies/low.py",
        "import policies.high\n",
        "a circle: policies/high.py -> policies/low.py -> ",
    ),
    "an import in a function": ("gateway/top.py", "def f():\n    import re\n", "gateway/top.py:2 imports inside"),
    "an import in a coroutine": (
        "gateway/top.py",
        "async def f():\n    from re import sub\n",
        "top.py:2 imports inside",
    ),
    "an import in a method, under if": (
        "gateway/top.py",
        "class A:\n    def f(self):\n        if self:\n            import re\n",
        "gateway/top.py:4 imports inside",
    ),
    "an import in a function, under try": (
        "policies/high.py",
        "def f():\n    try:\n        import re\n    except ImportError:\n        raise\n",
        "policies/high.py:3 imports inside",
    ),
    "an import in a class": ("gateway/top.py", "class A:\n    import re\n", "gateway/top.py:2 imports inside"),
    "a dynamic import in a function": (
        "gateway/top.py",
        "import importlib\ndef f():\n    return importlib.import_module('re')\n",
        "gateway/top.py:3 imports inside",
    ),
    "a long file": ("gateway/top.py", "x = 1\n" * 601, "gateway/top.py has 601 lines, more than 600"),
    "a broad except": ("gateway/top.py", "try:\n    pass\nexcept Exception:\n    raise\n", "gateway/top.py:3 catches"),
    "a bare except": ("gateway/top.py", "try:\n    pass\nexcept:\n    raise\n", "gateway/top.py:3 catches everything"),
    "a broader except": (
        "policies/low.py",
        "try:\n    pass\nexcept BaseException as e:\n    raise\n",
        "low.py:3 catches",
    ),
    "a broad except among others": (
        "gateway/top.py",
        "def f():\n    try:\n        pass\n    except (ValueError, Exception):\n        raise\n",
        "gateway/top.py:4 catches",
    ),
    "a broad suppression": (
        "gateway/top.py",
        "import contextlib\nwith contextlib.suppress(Exception):\n    pass\n",
        "gateway/top.py:2 catches everything",
    ),
    "code in a package file": ("gateway/__init__.py", '"""Does."""\nx = 1\n', "gateway/__init__.py holds code"),
    "a re-export": ("policies/__init__.py", "from policies.low import re\n", "policies/__init__.py holds code"),
    "a file without a floor": ("gateway/sub/new.py", "x = 1\n", "gateway/sub/new.py has no floor; add it to FLOORS"),
    "an allowance that is not used": (
        "gateway/root.py",
        "x = 1\n",
        "gateway/root.py may catch everything and does not",
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_each_breach_is_seen(tmp_path: Path, name: str) -> None:
    path, text, sentence = BREACHES[name]
    found = judge(build(tmp_path, CLEAN | {path: text}), LAW)
    assert any(sentence in breach for breach in found), found


def test_longer_circles_are_seen_once(tmp_path: Path) -> None:
    files = CLEAN | {f"gateway/{name}.py": f"import gateway.{to}\n" for name, to in ("ab", "bc", "ca")}
    floors = {**LAW.floors, "gateway/a.py": 1, "gateway/b.py": 1, "gateway/c.py": 1}
    assert judge(build(tmp_path, files), Law(floors, LAW.catch_all)) == [
        "imports run in a circle: gateway/a.py -> gateway/b.py -> gateway/c.py -> gateway/a.py"
    ]


def test_a_floor_for_a_file_that_is_gone_is_seen(tmp_path: Path) -> None:
    law = Law({**LAW.floors, "gateway/gone.py": 1}, LAW.catch_all)
    assert judge(build(tmp_path, CLEAN), law) == ["gateway/gone.py has a floor and does not exist"]

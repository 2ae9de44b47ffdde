"""The law of the code's shape, read off its syntax trees: what may import what, what stands where, how long a file is.

`judge(root, law)` returns one sentence for each breach in the packages under `root`. It knows nothing of this project's
files but the tables it is given.
"""

import ast
import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

IMPURE = frozenset(
    {
        "asyncio",
        "socket",
        "os",
        "time",
        "random",
        "secrets",
        "logging",
        "aiohttp",
        "redis",
        "prometheus_client",
        "gateway",
    }
)
"""What `policies` never imports: the world outside, the clock and chance."""
MAX_LINES = 600
BROAD = frozenset({"Exception", "BaseException"})


def _parsed(text: str) -> ast.Module:
    """The tree of a source. CPython 3.11 fails in it where a finalizer runs meanwhile (its issue 106905)."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()


@dataclass(frozen=True, slots=True)
class Law:
    """Floors by file (imports go down or stay level), and the files that may catch everything, each with the reason."""

    floors: Mapping[str, int]
    catch_all: Mapping[str, str]


@dataclass(slots=True)
class Module:
    """One file: its path below the root, and what it imports at which line."""

    path: str
    tree: ast.Module
    lines: int
    imports: list[tuple[int, str]] = field(default_factory=list)

    @property
    def package(self) -> str:
        return self.path.split("/")[0]


def judge(root: Path, law: Law, packages: tuple[str, ...] = ("gateway", "policies")) -> list[str]:
    """Every breach under `root`, a sentence each, sorted by file."""
    modules = {module.path: module for module in _modules(root, packages)}
    found = [sentence for module in modules.values() for sentence in _in_one_file(module, law)]
    edges = {path: _targets(module, modules) for path, module in modules.items()}
    found += [sentence for path in modules for sentence in _upward(path, edges[path], law)]
    found += _circles(edges)
    found += [f"{path} has a floor and does not exist" for path in law.floors if path not in modules]
    found += [
        f"{path} may catch everything and does not exist or catches nothing broad"
        for path in law.catch_all
        if path not in modules or not list(_broad_handlers(modules[path].tree))
    ]
    return sorted(found)


def _modules(root: Path, packages: tuple[str, ...]) -> Iterator[Module]:
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            text = file.read_text()
            module = Module(file.relative_to(root).as_posix(), _parsed(text), len(text.splitlines()))
            module.imports = list(_imports(module.tree, module.path))
            yield module


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    """Each imported name in full: `from a import b` is `a.b`, which may be the module `a` or the module `a.b`."""
    here = path.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{stem}.{alias.name}"


def _in_one_file(module: Module, law: Law) -> Iterator[str]:
    path = module.path
    if module.lines > MAX_LINES:
        yield f"{path} has {module.lines} lines, more than {MAX_LINES}"
    if path.endswith("__init__.py"):
        if not all(_is_docstring(node) for node in module.tree.body):
            yield f"{path} holds code; a package file is empty or a docstring"
    elif path not in law.floors:
        yield f"{path} has no floor; add it to FLOORS in tests/test_shape.py"
    if module.package == "policies":
        for line, name in module.imports:
            if name.split(".")[0] in IMPURE:
                yield f"{path}:{line} imports {name.split('.')[0]}, which policies may not"
    for line in _inner_imports(module.tree):
        yield f"{path}:{line} imports inside a function or class"
    if path not in law.catch_all:
        for line in _broad_handlers(module.tree):
            yield f"{path}:{line} catches everything; name what can be raised"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _inner_imports(tree: ast.Module) -> Iterator[int]:
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    lines = set()
    for outer in ast.walk(tree):
        if isinstance(outer, inner):
            lines |= {node.lineno for node in ast.walk(outer) if _imports_something(node)}
    yield from sorted(lines)


def _imports_something(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return called in ("import_module", "__import__")
    return isinstance(node, ast.Import | ast.ImportFrom)


def _broad_handlers(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {ast.unparse(kind).removeprefix("builtins.") if kind else "Exception" for kind in kinds}
            if names & BROAD:
                yield node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("suppress", "contextlib.suppress"):
            yield from (node.lineno for argument in node.args if ast.unparse(argument) in BROAD)


def _targets(module: Module, modules: Mapping[str, Module]) -> dict[str, int]:
    """The files of ours that a file imports, each with the first line that does; `if TYPE_CHECKING` counts too, since
    to know a type is to know its room."""
    found: dict[str, int] = {}
    for line, name in module.imports:
        parts = name.split(".")
        for candidate in (parts, parts[:-1]):
            stem = "/".join(candidate)
            path = next((p for p in (f"{stem}.py", f"{stem}/__init__.py") if p in modules), None)
            if path is not None:
                if path != module.path and not path.endswith("__init__.py"):
                    found.setdefault(path, line)
                break
    return found


def _upward(path: str, targets: Mapping[str, int], law: Law) -> Iterator[str]:
    own = law.floors.get(path)
    for target, line in targets.items():
        floor = law.floors.get(target)
        if path.split("/", maxsplit=1)[0] != target.split("/")[0] or own is None or floor is None:
            continue
        if floor > own:
            yield f"{path}:{line} (floor {own}) imports upward: {target} is on floor {floor}"


def _circles(edges: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Each circle once, named from its first file in alphabetical order."""
    found: set[tuple[str, ...]] = set()

    def walk(path: str, trail: list[str], done: set[str]) -> None:
        if path in trail:
            circle = trail[trail.index(path) :]
            first = circle.index(min(circle))
            found.add(tuple(circle[first:] + circle[:first]))
        elif path not in done:
            for target in edges.get(path, {}):
                walk(target, [*trail, path], done)
            done.add(path)

    done: set[str] = set()
    for path in sorted(edges):
        walk(path, [], done)
    return [f"imports run in a circle: {' -> '.join((*circle, circle[0]))}" for circle in sorted(found)]

"""Reads one YAML document as plain values, strictly.

YAML 1.2's core schema and no more (https://yaml.org/spec/1.2.2/#103-core-schema): `no`, `on`, `1:30` and `2026-07-28`
stay the strings they look like, where YAML 1.1, PyYAML's own rule, makes a boolean, a number and a date of them. Keys
are always strings, and a key that stands twice is an error. What the values mean is not known here.
"""

import re
from typing import Any, Final

import yaml

_BOOL: Final = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_NULL: Final = re.compile(r"(?:~|null|Null|NULL|)\Z")
_INT: Final = re.compile(r"[-+]?[0-9]{1,18}\Z")
_FLOAT: Final = re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)\Z")

_FIXES: Final = {
    "another document": "keep one and leave --- out",
    "\\t": "indent with spaces",
    "mapping values are not allowed": 'put a value that holds ": " into quotes',
    "node content": "put text that starts with a bracket or a quote into quotes as a whole",
    "could not determine a constructor": "leave tags out",
    "expected": "close every bracket and quote, and check the indentation",
}
"""What to do about PyYAML's own complaints, by a sign of each, the particular ones first."""


class YamlError(Exception):
    """The text is no YAML document of plain values; the message names the line and what is wrong there."""


class _Loader(yaml.SafeLoader):
    """The safe loader with the core schema's scalars, string keys and no duplicates."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 -- PyYAML's own shape

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002 -- always deep
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _error(key_node, "a key must be a plain string")
            key = str(key_node.value)
            if key in mapping:
                raise _error(key_node, f'the key "{key}" stands twice; keep one')
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", _NULL, ["~", "n", "N", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _loader, node: int(node.value))
_Loader.add_constructor("tag:yaml.org,2002:float", lambda _loader, node: float(node.value))


def parse(text: str) -> Any:
    """The document's value: dicts with string keys, lists, strings, numbers, booleans, None. Raises `YamlError`."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 -- a SafeLoader
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise YamlError(f"{line}{_hint(error.problem or 'is no YAML')}") from None
    except yaml.YAMLError:
        raise YamlError("holds a character that YAML does not allow") from None


def _hint(problem: str) -> str:
    return next((f"{problem}; {fix}" for sign, fix in _FIXES.items() if sign in problem), problem)


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

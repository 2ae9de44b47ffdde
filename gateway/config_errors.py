"""Words what pydantic found wrong in a configuration: one line each, with the path of the field and the fix.

No line holds a value that came from the environment or a file: where a message quotes what was given, it quotes the
placeholder that was written instead. What is allowed is decided by `policies/settings.py`, not here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from policies.settings import Settings
from policies.settings_base import PROBLEMS, Problem, hint

Place = tuple[str | int, ...]

_WORDS: Final = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "finite_number": "must be a number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "string_type": "must be a string; put it into quotes",
    "string_too_short": "must not be empty",
    "dict_type": "must be a mapping, that is lines of key: value",
    "mapping_type": "must be a mapping, that is lines of key: value",
    "model_type": "must be a mapping, that is lines of key: value",
    "model_attributes_type": "must be a mapping, that is lines of key: value",
    "tuple_type": "must be a list, that is lines that start with - or [in, brackets]",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "string_pattern_mismatch": "a name must be lower-case letters, digits and inner hyphens, at most 63 of them",
}
_MISSING: Final = "is missing; add it"
_SENTENCE_END: Final = re.compile(r"[.:](?:\s|$)")
_OF_THE_KEY: Final = "[key]"
"""How pydantic ends a place that means a key and not the value under it."""


def problems(error: ValidationError, origins: Mapping[Place, str], given: Any) -> list[Problem]:
    """Everything wrong, in the order of the file; `given` is what was validated, `origins` as in `placeholders`."""
    found: list[Problem] = []
    for details in error.errors(include_url=False):
        place = tuple(part for part in details["loc"] if part != _OF_THE_KEY)
        if details["type"] == PROBLEMS:
            found += [((*place, *inner), message) for inner, message in details["ctx"]["problems"]]
        else:
            found.append((place, _message(details, place)))
    return [(place, _masked(message, place, origins, given)) for place, message in _without_echoes(found)]


def _without_echoes(found: list[Problem]) -> list[Problem]:
    """Leaves out what only follows from another mistake: that a key is missing where its name is misspelt."""
    misspelt = {
        (*place[:-1], key) for place, message in found for key in re.findall(r'^unknown key; .*"(.*)"', message)
    }
    return [(place, message) for place, message in found if not (message.startswith(_MISSING) and place in misspelt)]


def dotted(place: Iterable[str | int]) -> str:
    """`upstreams.weather.url`, `routes[0].path`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")


def _message(details: ErrorDetails, place: Place) -> str:
    kind = details["type"]
    if kind == "extra_forbidden":
        model = _model_at(place[:-1])
        return f"unknown key; {hint(str(place[-1]), list(model.model_fields) if model else [])}"
    if kind == "missing":
        model = _model_at(place[:-1])
        about = model.model_fields[str(place[-1])].description if model else None
        return f"{_MISSING}: {_SENTENCE_END.split(about)[0]}" if about else _MISSING
    if details["input"] is None and kind.endswith("_type"):
        return "is empty; give it a value or leave it out"
    context = {key: _number(value) for key, value in details.get("ctx", {}).items()}
    if kind == "value_error":
        return str(context["error"])
    return _WORDS[kind].format(**context).replace("'", "") if kind in _WORDS else details["msg"]


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _masked(message: str, place: Place, origins: Mapping[Place, str], given: Any) -> str:
    written = origins.get(place)
    if written is None:
        return message
    value = given
    for part in place:
        value = value[part]
    return message.replace(value, written) if value else message


def _model_at(place: Place) -> type[BaseModel] | None:
    """The model whose fields stand at `place`, or None where there is none."""
    kind: Any = Settings
    for part in place:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            field = kind.model_fields.get(str(part))
            kind = None if field is None else field.annotation
        else:
            kind = get_args(kind)[-1 if get_origin(kind) is not tuple else 0]
        kind = _without_none(kind)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _without_none(kind: Any) -> Any:
    options = [option for option in get_args(kind) if option is not type(None)]
    return options[0] if type(None) in get_args(kind) else kind

"""What every part of the settings is made of: the strict model, and faults that name several places at once.

What may be configured is not known here: `policies/settings.py`.
"""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic_core import PydanticCustomError

from policies import wellformed

Problem = tuple[tuple[str | int, ...], str]
"""Where in the settings something is wrong, and one sentence that says what and how to mend it."""

PROBLEMS: Final = "settings_problems"
"""The type of the pydantic error whose context holds `problems`, a list of `Problem`: several faults found at once."""

UpstreamName = Annotated[str, StringConstraints(pattern=wellformed.NAME)]


class Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


def hint(name: str, known: list[str]) -> str:
    """What `name` may have been meant to be."""
    near = wellformed.nearest(name, known)
    return f'did you mean "{near}"?' if near else f"known: {', '.join(sorted(known))}"


def refuse(problems: list[Problem]) -> None:
    """Raises what pydantic reports as a fault of the model under validation, unless there is none."""
    if problems:
        text = "; ".join(f"{'.'.join(map(str, place))}: {message}" for place, message in problems)
        raise PydanticCustomError(PROBLEMS, "{text}", {"text": text, "problems": problems})

"""What every part of the operator's settings is: a frozen value that takes no unknown names and shows no input.

Nothing here knows a setting.
"""

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )

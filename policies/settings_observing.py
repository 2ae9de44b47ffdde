"""The settings of what operators are told: metrics.

A part of `policies/settings.py`, whose rules hold here: the docstring under a field is its manual.
"""

from policies.settings_base import Model


class Metrics(Model):
    """What `/metrics` of `admin` tells."""

    tools: bool = True
    """Whether calls are counted by the tool that they call (`gen_ai_tool_name`): by the names that servers list, 256
    of each; whatever else clients call is `_OTHER`. With `false` there is one series for all tools."""

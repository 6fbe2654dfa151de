"""Fields of dataclasses that are no part of what an operator is (see `engine.identity`)."""

from __future__ import annotations

from collections.abc import Mapping

LEFT_OUT = "not identity"


def not_identity(why: str) -> Mapping[str, str]:
    """The metadata of a field that is no part of what its operator is, and the reason."""
    return {LEFT_OUT: why}

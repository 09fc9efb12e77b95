"""Examines and prints the options that callers give, which may be any objects, even ones that cannot be shown, compared or hashed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONGEST = 120  # characters of a value in a message


def shown(value: Any) -> str:
    """Return a value as a message shows it: its own text if that is one short line, else the name of its type."""
    try:
        text = repr(value)
    except Exception:  # whatever a foreign object does
        text = ""
    if 0 < len(text) <= _LONGEST and "\n" not in text:
        return text
    kind = type(value).__qualname__[:_LONGEST]
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def attribute(data: Any, name: str) -> Any:
    """Return an attribute; None if there is none or reading it fails. Converting the data later raises the error."""
    try:
        return getattr(data, name, None)
    except Exception:  # whatever a foreign object does
        return None


def is_word(value: Any, *words: str) -> bool:
    """Whether an option is one of these words. Only strings are compared, since arrays compare elementwise."""
    return isinstance(value, str) and value in words


def is_by_name(value: Any) -> bool:
    """Whether an option is a mapping by name. SciPy's dok arrays are mappings too, but not of this kind."""
    return isinstance(value, Mapping) and not hasattr(value, "shape") and all(isinstance(name, str) for name in value)

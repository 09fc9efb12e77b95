"""Guesses what was meant by texts that are not index notation: indices after an underscore, products without a sign, other languages."""

from __future__ import annotations

import re

from .functions import FUNCTIONS

# compiled at first use: few texts are wrong
_BEHIND = r"\b([A-Za-z][A-Za-z0-9]*)_\{?([A-Za-z]+)\}?(?![A-Za-z0-9_(\[])"
_APPLIED = rf"\b({'|'.join(name for name in FUNCTIONS if name.isalpha())})[ \t]+([A-Za-z_]\w*\([^()]*\))"
_SUMMED = r"\bsum_\{?([A-Za-z]+)\}?[ \t]+(.+)"
_FORM = "y(i) = A(i,j) * x(j)"
_ELSEWHERE = {
    "@": f"products name their indices: {_FORM}",
    "{": f"indices stand in brackets: {_FORM}",
    "^": "write pow(x(i), 2)",
    "**": "write pow(x(i), 2)",
    ";": "one expression at a time",
    "'": "a transpose is another order of indices: A(j,i)",
}


def rewritten(text: str) -> str:
    """Return a text with letters after an underscore turned into subscripts, brackets around the arguments of sums and functions, and ``*``
    between tensors."""
    summed = re.sub(_SUMMED, lambda found: f"sum({','.join(found[1])}, {found[2]})", text)
    spelled = re.sub(_BEHIND, lambda found: f"{found[1]}({','.join(found[2])})", summed)
    spelled = re.sub(_APPLIED, r"\1(\2)", spelled)
    return re.sub(r"(?<=[\])\w])[ \t]+(?=[A-Za-z_(])", " * ", re.sub(r"(?<=\d)(?=[A-Za-z_]\w*[(\[])", " * ", spelled))


def advice(character: str) -> str:
    """Return what to write in place of a character of another language; empty if that is not known."""
    hint = _ELSEWHERE.get(character)
    return f"; {hint}" if hint else ""


def indexed_name(name: str) -> str | None:
    """Return the access that a name such as ``A_ij`` means, ``A(i,j)``; None for other names."""
    found = re.fullmatch(_BEHIND, name)
    return f"{found[1]}({','.join(found[2])})" if found else None

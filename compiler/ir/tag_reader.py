"""Reads the tags of loops from the text of the loop IR."""

from __future__ import annotations

from .nodes import Dealt, Parallel, Simd, Unroll, Vector
from .tokens import bare
from .value_reader import ValueReader


class TagReader(ValueReader):
    """Reads values, and tags of loops."""

    def _tag(self) -> Parallel | Vector | Simd | Unroll | Dealt | None:
        """Read the tag before ``for``; None if there is none."""
        if self._take("parallel"):
            details = self._details()
            names = [text for kind, text in details if kind == "name"]
            numbers = [int(text) for kind, text in details if kind == "number"]
            return Parallel(names[0] if names else None, numbers[0] if numbers else None)
        if self._take("vector"):
            details = self._details()
            words = [text for _, text in details]
            least = int(words[words.index("least") + 1]) if "least" in words else 0
            return Vector(int(words[0]) if words and words[0].isdigit() else None, least, "foreseen" in words)
        if self._take("simd"):
            return Simd(_by_operator(self._details()))
        if self._take("dealt"):
            unit, _, within, *more = (text for _, text in self._details())
            numbers = {word: int(number) for number, word in zip(more[::2], more[1::2], strict=True)}
            return Dealt(unit, within, **numbers)  # type: ignore[arg-type]  # the verifier knows the units
        if self._take("unroll"):
            return Unroll(int(self._details()[0][1]))
        return None

    def _details(self) -> list[tuple[str, str]]:
        """Return the words in brackets after a tag, without commas."""
        found: list[tuple[str, str]] = []
        if self._take("("):
            while not self._take(")"):
                found += [self._next()] if not self._take(",") else []
        return found


def _by_operator(details: list[tuple[str, str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Group names by the operator before them."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for kind, text in details:
        if kind == "mark":
            found.append((text, ()))
        elif found:
            found[-1] = (found[-1][0], (*found[-1][1], bare(text)))
    return tuple(found)

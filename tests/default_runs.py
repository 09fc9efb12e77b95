"""Evaluating with the default schedule."""

from __future__ import annotations

from typing import Any

import sparsetune as st


def default(expression: str, operands: dict[str, Any], **keywords: Any) -> Any:
    return st.evaluate(expression, operands, schedule="default", **keywords)

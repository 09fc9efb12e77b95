"""Empirical search: which candidate to measure next. Strategies are asked and told; they know nothing of measuring."""

"""Index notation: its nodes, parser and printer, and the meaning of expressions."""

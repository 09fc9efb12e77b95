"""Index notation: nodes, parser, printer, meaning."""

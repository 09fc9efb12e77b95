"""The reports published in ``results/``: each module measures something and writes a page about it."""

"""Pages for people: everything a database holds, and a night's comparison, each one HTML file that works without a network.

``material`` reads records into the values that a page shows, ``figures`` draws plots, ``listings`` compiles the loop nests and C of
winner and default, ``page`` fills the templates in this folder.
"""

from .page import write_nightly_page, write_report

__all__ = ["write_nightly_page", "write_report"]

"""Pages for people: everything a database holds, and a night's comparison, each one HTML file that works without a network.

``material`` reads records into what is shown, ``figures`` draws it, ``listings`` compiles the loop nests and C that stand beside each
other, ``page`` fills the templates beside it.
"""

from .page import write_nightly_page, write_report

__all__ = ["write_nightly_page", "write_report"]

"""``configs/machines.toml``: what pruning may assume of machines. Lookup imports this module, so it imports nothing else of the tuner."""

from __future__ import annotations

from ..compiler.frozen import frozen
from . import toml_table
from .toml_table import Table, read_toml


@frozen
class MachineSettings:
    """What pruning may assume of a machine.

    Attributes:
        workspace_share: share of the last-level cache that the workspaces of all threads together may take.
    """

    workspace_share: float


def load_machine(processor: str) -> MachineSettings:
    """Return the settings of ``configs/machines.toml`` for a processor.

    Raises:
        DataError: the file is not well-formed.
    """
    path = toml_table.FOLDER / "machines.toml"
    content = read_toml(path)
    table = Table({**content.get("default", {}), **content.get(processor, {})}, str(path))
    found = MachineSettings(workspace_share=table.number("workspace_share"))
    table.done()
    return found

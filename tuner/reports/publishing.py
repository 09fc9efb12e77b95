"""Writing reports: folders are made and checked before anything is measured, and pages are written whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from ..written import write_whole


def ready_folder(folder: Path) -> Path:
    """Return a folder that files can be written into, making it if it does not exist.

    Raises:
        click.BadParameter: it cannot be made, or no file can be written into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise click.BadParameter(f"nothing can be written into {folder}: {error.strerror or error}") from None
    return folder


def _folder(_context: click.Context, _parameter: click.Parameter, given: Path) -> Path:
    return ready_folder(given)


def _file(_context: click.Context, _parameter: click.Parameter, given: Path) -> Path:
    return ready_folder(given.parent) / given.name


def folder_option(name: str, default: Path, help: str) -> Any:
    """Return an option of a command: a folder to write into, which is ready before the command begins."""
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option(name, type=kind, default=default, show_default=True, help=help, callback=_folder)


def output_option(default: Path, help: str) -> Any:
    """Return the option ``--output``: a file, whose folder is ready before the command begins."""
    kind = click.Path(path_type=Path, dir_okay=False)
    return click.option("-o", "--output", type=kind, default=default, show_default=True, help=help, callback=_file)


results_option = folder_option("--results", Path("results"), "folder of the page, and of the rows that it is made of")


def publish(path: Path, text: str) -> None:
    """Write a page, a picture or rows; whatever happens, the file is the old one or the new one, whole.

    Raises:
        click.ClickException: it cannot be written.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror or error}") from None

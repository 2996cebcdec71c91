"""A path together with the folder of the file that states it."""

from __future__ import annotations

from pathlib import Path


class StatedPath(str):
    """A path as a YAML file states it; ``folder`` is the folder of that file."""

    folder: Path

    def __new__(cls, text: str, folder: Path) -> StatedPath:
        made = super().__new__(cls, text)
        made.folder = folder
        return made

    @property
    def beside(self) -> Path:
        """The path seen from the folder of the stating file."""
        return self.folder / Path(self).expanduser()

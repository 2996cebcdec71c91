"""Finds the files of a benchmark's media folder, which come in archives next to its data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils.media_files import hf_home

Settings = Mapping[str, Any] | None


class MediaFolder(Struct, frozen=True):
    """The folder ``HF_HOME/CACHE_DIR`` of a benchmark's media, and the folders of the run that may replace it.

    The settings of its functions are ``lmms_eval_specific_kwargs`` with the run's ``data_root`` and ``media_root``; the
    latter only if the task's YAML names it under ``run_options``.
    """

    cache_dir: str
    """Folder below ``HF_HOME``, as in ``dataset_kwargs``."""
    dataset: str
    """Name of the data set on the hub."""
    tasks: tuple[str, ...]
    """Tasks with these media: folders of their names below ``data_root`` may hold them."""

    def places(self, settings: Settings = None) -> Iterator[Path]:
        """List the folders that may hold the media, the most specific first; they need not exist."""
        settings = settings or {}
        if settings.get("data_root"):
            root = Path(settings["data_root"]).expanduser()
            owner, _, name = self.dataset.rpartition("/")
            for copy in (root / self.dataset, root / f"{owner}__{name}", root / name):
                yield from (copy / "media", copy)
            yield root / "media"
            yield from (root / task / "media" for task in self.tasks)
            yield from (root / self.cache_dir, root)
        if settings.get("media_root"):
            root = Path(settings["media_root"]).expanduser()
            yield from (root / self.cache_dir, root)
        yield hf_home() / self.cache_dir

    def look_up(self, *names: str, settings: Settings = None) -> Path | None:
        """Return the first file among some names for it, or ``None``.

        Args:
            names: paths below the media folder. A place is searched for all of them before the next place.
            settings: settings of the calling function.
        """
        settings = settings or {}
        places = _there(self, settings.get("data_root"), settings.get("media_root"), hf_home())
        return _first(places, names) or _first(self.places(settings), names)

    def find(self, *names: str, settings: Settings = None) -> str:
        """Return the path of a file, as ``look_up`` finds it.

        Raises ``MediaError`` if it is missing; it names the places.
        """
        found = self.look_up(*names, settings=settings)
        if found is None:
            places = [str(place) for place in self.places(settings) if place.is_dir()]
            raise MediaError(
                f"{names[0]} is not there; looked in {', '.join(places) or self._home}; unpack the archives of "
                f"{self.dataset} to {self._home}, or name their folder by --data_root or --media_root"
            )
        return str(found)

    def path(self, *names: str, settings: Settings = None) -> str:
        """Return the path of a file, as ``look_up`` finds it, or its path below ``HF_HOME`` if it is missing."""
        return str(self.look_up(*names, settings=settings) or self._home / names[0])

    @property
    def _home(self) -> Path:
        return hf_home() / self.cache_dir


@lru_cache(maxsize=256)
def _there(folder: MediaFolder, data_root: str | None, media_root: str | None, home: Path) -> tuple[Path, ...]:  # noqa: ARG001
    """Return the existing folders. A look-up in a missing one takes as long, and most are missing.

    If a file is not in these, folders that were made later are searched too.
    """
    return tuple(place for place in folder.places({"data_root": data_root, "media_root": media_root}) if place.is_dir())


def _first(places: Iterable[Path], names: Sequence[str]) -> Path | None:
    return next((path for place in places for name in names if (path := place / name).is_file()), None)

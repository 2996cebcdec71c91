"""``--baseline``: finding the samples of an earlier run, and the numbers of the comparison with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml
from msgspec import Struct

from lmms_eval.errors import ConfigError, DataError
from lmms_eval.stats.interval import Estimand
from lmms_eval.utils.files import read_plain_text
from lmms_eval.utils.names import file_part
from lmms_eval.utils.yaml_bounds import load_bounded

HUB = "hf://"
SIGNIFICANT = 0.05
"""P-values below it get a star."""
LINES = (".jsonl", ".json")
"""Suffixes of samples files."""
Presets = Mapping[str, str | Mapping[str, str]]
"""By name: a location of samples, or one for each task."""


@dataclass(frozen=True, slots=True)
class BaselineSamples:
    """The samples that ``--baseline`` names."""

    text: str
    """The option's value."""
    places: str | Mapping[str, str]
    """A local path or ``hf://USER/REPO[/PATH]`` of a file or folder, or one for each task."""
    task: str | None = None
    """The task of the samples, if it is fixed by ``PRESET:TASK``; the run's task otherwise."""

    def file(self, task: str) -> Path | None:
        """Return the samples file to compare a task with, downloading it from the hub if needed.

        Returns:
            The path; ``None`` if the baseline has no samples of this task.

        Raises:
            DataError: the hub does not provide the file.
        """
        task = self.task or task
        place = self.places if isinstance(self.places, str) else self.places.get(task)
        if place is None:
            return None
        return _from_hub(place, task) if place.startswith(HUB) else _local(Path(place).expanduser(), task)


def find_baseline(text: str, presets: str | None) -> BaselineSamples:
    """Read a ``--baseline``: a path that exists, ``hf://USER/REPO[/PATH]``, ``PRESET`` or ``PRESET:TASK``.

    Raises ``ConfigError`` if the preset does not exist, or the file of presets cannot be read.
    """
    if text.startswith(HUB):
        if len([part for part in text.removeprefix(HUB).split("/") if part]) < 2:
            raise ConfigError(f"--baseline {text}: write hf://USER/REPO or hf://USER/REPO/FILE")
        return BaselineSamples(text, text)
    if "/" in text or text.endswith(LINES) or Path(text).exists():
        return BaselineSamples(text, text)
    name, _, task = text.partition(":")
    known = read_presets(Path(presets)) if presets else {}
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        listed = f"{presets} has: {', '.join(sorted(known)) or 'none'}" if presets else "presets are in a file of yours"
        raise ConfigError(
            f"--baseline {text}: neither a samples file nor a preset; {meant}{listed} (--baseline_presets FILE, "
            "docs/statistics.md)"
        )
    places = known[name]
    if task and not isinstance(places, str) and task not in places:
        raise ConfigError(f"--baseline {text}: preset {name} has no task {task}; it has: {', '.join(sorted(places))}")
    return BaselineSamples(text, places, task or None)


def read_presets(path: Path) -> Presets:
    """Read a YAML file of presets: ``NAME: PLACE`` or ``NAME: {TASK: PLACE}``. Paths are relative to its folder.

    Raises ``ConfigError`` if the file cannot be read, or is not such a mapping.
    """
    try:
        content = load_bounded(read_plain_text(path)) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"--baseline_presets {path}: cannot be read: {error}") from error
    found: dict[str, str | Mapping[str, str]] = {}
    for name, places in content.items() if isinstance(content, dict) else [("", content)]:
        by_task = places if isinstance(places, dict) else {"": places}
        if (
            not isinstance(name, str)
            or not name
            or not all(isinstance(item, str) for pair in by_task.items() for item in pair)
        ):
            raise ConfigError(
                f"--baseline_presets {path}: write NAME: PLACE or NAME: {{TASK: PLACE}}, a place being a samples "
                "file, a folder of them, or hf://USER/REPO[/PATH]"
            )
        absolute = {
            task: place if place.startswith(HUB) else str(path.parent / Path(place).expanduser())
            for task, place in by_task.items()
        }
        found[name] = absolute if isinstance(places, dict) else absolute[""]
    return found


def choose_file(names: Iterable[str], task: str) -> str | None:
    """Return the newest samples file of a task (``DATE_samples_TASK.jsonl``), else the only file of lines."""
    lines = [name for name in names if name.endswith(".jsonl")]
    ends = tuple(f"samples_{part}.jsonl" for part in (file_part(task), task))
    own = [name for name in lines if PurePosixPath(name).name.endswith(ends)]
    if own:
        return max(own, key=lambda name: (PurePosixPath(name).name, name))
    return lines[0] if len(lines) == 1 and "samples_" not in PurePosixPath(lines[0]).name else None


def _local(path: Path, task: str) -> Path | None:
    if not path.is_dir():
        return path  # the reader reports a file that does not exist
    chosen = choose_file((item.as_posix() for item in path.rglob("*.jsonl")), task)
    return None if chosen is None else Path(chosen)


def _from_hub(place: str, task: str) -> Path | None:
    """Download a samples file from a dataset repository."""
    import huggingface_hub

    user, name, *inner = place.removeprefix(HUB).strip("/").split("/")
    repository, path = f"{user}/{name}", "/".join(inner)
    try:
        if not path.endswith(LINES):
            files = huggingface_hub.HfApi().list_repo_files(repository, repo_type="dataset")
            chosen = choose_file((file for file in files if file.startswith(f"{path}/" if path else "")), task)
            if chosen is None:
                return None
            path = chosen
        return Path(huggingface_hub.hf_hub_download(repository, path, repo_type="dataset"))
    except Exception as error:  # network and hub errors have no common class
        raise DataError(
            f"--baseline {place}: the hub does not give {path or 'the list of files'} of the data set {repository}: "
            f"{type(error).__name__}: {' '.join(str(error).split())}; check the name, the network and HF_TOKEN"
        ) from error


class BaselineRow(Struct, frozen=True):
    """A metric through one filter pipeline."""

    metric: str
    filter: str

    def __str__(self) -> str:
        return f"{self.metric},{self.filter}"


@dataclass(frozen=True, slots=True)
class PairedScores:
    """A metric of this run and of the baseline, over the documents that both have."""

    baseline: str
    """As ``--baseline`` names it."""
    unit: str
    """``percent``, or empty for the metric's own unit if its scores are not shares."""
    baseline_score: float
    """The baseline's mean over these documents."""
    difference: float
    """Mean of this run's scores minus the baseline's mean."""
    ci_lower: float | None
    """Lower end of the 95 % interval; ``None`` if all differences are equal, since their spread is then unknown."""
    ci_upper: float | None
    """Upper end of the 95 % interval; ``None`` as ``ci_lower``."""
    pvalue: float | None
    """``None`` if all differences equal one number other than 0, or if this run or the baseline stopped early."""
    n: int
    """Number of documents that both have."""
    baseline_early: str = ""
    """``stopped early: N of M`` if the baseline stopped early: only these N documents are compared."""
    depends: str = ""
    """``depends on N documents without a score`` if the difference is significant over the others, but not whatever
    these documents would score; empty otherwise."""
    estimand: Estimand | None = None
    """Quantity whose difference the interval holds; ``None`` without an interval, and in earlier results."""


def baseline_lines(paired: Mapping[str, Mapping[str, PairedScores]]) -> list[str]:
    """Return the lines below the table about baselines that stopped early and documents without a score.

    ``paired`` is by task and row.
    """
    lines = []
    for task, rows in paired.items():
        for one in list(rows.values())[:1]:
            if one.baseline_early:
                lines.append(
                    f"{task}: the baseline {one.baseline} {one.baseline_early} documents: compared over these alone; "
                    "the interval is for all and holds whenever the baseline stopped, and there is no p-value"
                )
        lines += [
            f"{task}: {row}: the difference from {one.baseline} {one.depends}: P_Value is over the others and has no "
            "star"
            for row, one in rows.items()
            if one.depends
        ]
    return lines

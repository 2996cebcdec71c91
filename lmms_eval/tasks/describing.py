"""Descriptions of tasks, groups and tags from their YAML files and the table of facts; no task code is imported."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from lmms_eval.config.rules import CONTROLS
from lmms_eval.metrics.table import METRICS
from lmms_eval.tasks.catalogue import Catalogue, IndexEntry
from lmms_eval.tasks.facts import Facts, facts_of
from lmms_eval.tasks.packs.store import used_pack
from lmms_eval.tasks.selection import choose
from lmms_eval.tasks.yaml.metrics import DEFAULTS
from lmms_eval.tasks.yaml.task import TaskSource
from lmms_eval.utils.files import read_text

PERMUTED = "permute-choices"
"""Name of ``--permute_choices`` among the controls."""
_CONTROLLED = ("image", "video", "audio")
"""Modalities whose media can be left out, made blank and shuffled."""
EntryKind = Literal["task", "group", "tag"]


class StatedMetric(Struct, frozen=True):
    """A metric as the task file states it."""

    name: str
    higher_is_better: bool
    low: float | None
    """The least possible value; ``None`` if it is not stated or unbounded."""
    high: float | None


class DescribedTask(Struct, frozen=True):
    """A task of the group, tag or task that is described."""

    name: str
    documents: int | None
    data_set: str
    configuration: str
    split: str
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    metrics: tuple[StatedMetric, ...]
    controls: tuple[str, ...] = ()
    """Controls that make sense, with ``permute-choices`` for rotations of the choices."""


class Description(Struct, frozen=True):
    """Facts about a task, group or tag. ``None`` and empty texts mean "not stated"."""

    name: str
    kind: EntryKind
    file: str
    title: str
    """The heading of the card, and its first paragraph."""
    tags: tuple[str, ...]
    documents: int | None
    modalities: tuple[str, ...]
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    chance: tuple[str, ...]
    download: tuple[str, ...]
    licence: tuple[str, ...]
    published: tuple[str, ...]
    controls: tuple[str, ...]
    """Controls that make sense for one of the tasks or more (``docs/controls.md``)."""
    parts: tuple[DescribedTask, ...]


def describe(name: str, catalogue: Catalogue, is_logged: bool = True) -> Description:
    """Describe a task, or the tasks of a group or tag together. ``is_logged`` is as for ``choose``.

    Raises:
        UnknownNameError: there is no such name. TaskError: its YAML is wrong.
    """
    if not catalogue.has(name):
        raise catalogue.unknown(name)
    entry = catalogue.entry(name)
    sources = choose([name], catalogue, is_logged).sources
    parts = tuple(map(_part, sources))
    found = [facts for source in sources if (facts := _facts(source)) is not None]
    is_own = name in catalogue.own_names() and not (entry is not None and entry.pack)
    own = facts_of(name, is_group=True) if is_own and (entry is None or entry.kind == "group") else None
    rows = [own, *found] if own is not None else found
    counts = [part.documents for part in parts]
    archives = dict.fromkeys(str(size) for source in sources if (size := source.raw.get("media_archive")))
    total = sum(count for count in counts if count is not None) if counts and None not in counts else None
    return Description(
        name=name,
        kind="tag" if entry is None else entry.kind,
        file="" if entry is None else entry.location,
        title="" if entry is None else card_of(entry.file.parent),
        tags=() if entry is None else entry.tags,
        documents=total if total is not None or own is None else own.documents,
        modalities=_merged(rows, "modalities"),
        needs=_merged(rows, "needs"),
        uses=_merged(rows, "uses"),
        chance=_texts(rows, own, "chance"),
        download=_texts(rows, own, "download") or tuple(archives),
        licence=_texts(rows, own, "licence"),
        published=_texts(rows, own, "published"),
        controls=tuple(dict.fromkeys(name for part in parts for name in part.controls)),
        parts=parts,
    )


class SearchTerms(Struct, frozen=True):
    """Terms of a search. An empty or ``None`` term matches every task."""

    word: str = ""
    """Part of a name, a tag or the beginning of a card, in any case."""
    modality: str = ""
    need: str = ""
    without: str | None = None
    """A need that a task must not have; empty: it needs nothing."""

    def fits(self, entry: IndexEntry, facts: Facts | None) -> bool:
        """Return whether a task matches. A task without facts is matched by its words alone."""
        if not _holds(self.word, (entry.name, *entry.tags, card_of(entry.file.parent))):
            return False
        if facts is None:
            return not (self.modality or self.need or self.without is not None)
        has_need = not self.need or self.need in facts.needs
        lacks = self.without is None or not (self.without in facts.needs if self.without else facts.needs)
        return has_need and lacks and (not self.modality or self.modality in facts.modalities)


def search(catalogue: Catalogue, wanted: SearchTerms) -> list[IndexEntry]:
    """Find tasks by facts and words. Tasks whose name or tag holds the word come first, each part sorted by name."""
    found = [
        entry
        for name, entry in sorted(catalogue.tasks.items())
        if wanted.fits(entry, None if entry.pack else facts_of(name))
    ]
    return sorted(found, key=lambda entry: not _holds(wanted.word, (entry.name, *entry.tags)))


def _holds(word: str, texts: Iterable[str]) -> bool:
    return any(word.casefold() in text.casefold() for text in texts)


@functools.cache
def card_of(folder: Path) -> str:
    """Return the heading and the first paragraph of a benchmark's card; empty if it has no card."""
    card = folder / "README.md"
    if not card.is_file():
        return ""
    paragraphs = [text.strip() for text in read_text(card).split("\n\n") if text.strip()]
    return ". ".join(text.lstrip("# ") for text in paragraphs[:2] if not text.startswith("|"))


def _facts(source: TaskSource) -> Facts | None:
    """Return the row of a task in the table of facts, which has no tasks of packs."""
    return None if used_pack(Path(source.file)) is not None else facts_of(source.base or source.name)


def _part(source: TaskSource) -> DescribedTask:
    raw, facts = source.raw, _facts(source)
    path, sample = raw.get("dataset_path"), raw.get("sample")
    return DescribedTask(
        name=source.name,
        documents=int(sample["size"]) if sample else facts.documents if facts is not None else None,
        data_set=str(path) if isinstance(path, str) else "",
        configuration=str(raw.get("dataset_name") or ""),
        split=str(raw.get("test_split") or raw.get("validation_split") or ""),
        needs=facts.needs if facts is not None else (),
        uses=facts.uses if facts is not None else (),
        metrics=tuple(_metrics(raw)),
        controls=controls_of_source(source),
    )


def controls_of_source(source: TaskSource) -> tuple[str, ...]:
    """Return the controls of a task: those in the table of facts, else the media controls if the task has media, and
    the choice controls if it states its choices."""
    raw, facts = source.raw, _facts(source)
    if facts is not None and facts.controls is not None:
        return facts.controls
    has_media = facts is not None and not {*facts.modalities}.isdisjoint(_CONTROLLED)
    found = [name for name in CONTROLS if name.endswith("-media") and has_media]
    if raw.get("choices") or raw.get("doc_to_choice") is not None:
        found.append("choices-only")
    return (*found, PERMUTED) if raw.get("choices") else tuple(found)


def _metrics(raw: Mapping[str, Any]) -> Iterator[StatedMetric]:
    stated = raw.get("metric_list")
    names = DEFAULTS.get(str(raw.get("output_type")), ("exact_match",))
    for entry in [{"metric": name} for name in names] if stated is None else stated:
        name = str(entry["metric"])
        known = METRICS.get(name)
        higher = entry.get("higher_is_better", True if known is None else known.higher_is_better)
        bounds = entry.get("range")
        within = known.score_range if known else None
        ends = list(bounds) if bounds else [within.low, within.high] if within is not None else [None, None]
        yield StatedMetric(name, bool(higher), _end(ends[0]), _end(ends[1]))


def _end(stated: float | None) -> float | None:
    """An end of a range; ``None`` if it is absent or infinite."""
    return None if stated is None or not math.isfinite(stated) else float(stated)


def _merged(rows: Sequence[Facts], field: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for row in rows for word in getattr(row, field)))


def _texts(rows: Sequence[Facts], own: Facts | None, field: str) -> tuple[str, ...]:
    """The text of the name's own row, or else those of the tasks, each once."""
    if own is not None and (text := getattr(own, field)):
        return (str(text),)
    return tuple(dict.fromkeys(text for row in rows if (text := getattr(row, field))))

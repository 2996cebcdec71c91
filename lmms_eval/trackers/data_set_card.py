"""The card of a data set that runs are pushed into: which samples there are, for the hub's viewer and for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

CARD = "README.md"
LATEST = "latest"
_FENCE = "---\n"
_BEGIN, _END = "<!-- begin lmms_eval -->", "<!-- end lmms_eval -->"
"""What stands between them is written anew with each push; the rest is of people and stays."""


@dataclass(frozen=True, slots=True)
class SamplesFile:
    """Samples of one task in the repository."""

    model: str
    task: str
    name: str
    """Name of the file, which begins with the run's date stamp."""
    path: str
    """Path in the repository."""

    @property
    def config(self) -> str:
        """Name under which ``load_dataset`` finds the task's samples."""
        return f"{self.model}__{self.task}" if self.model else self.task

    @property
    def split(self) -> str:
        return self.name.partition("_samples_")[0]


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Facts that the user's arguments state."""

    title: str
    leaderboard: str = ""
    contact: str = ""


def card_with(card: str, samples: Sequence[SamplesFile], facts: CardFacts) -> str:
    """Return the card with the samples added; its own text and other metadata stay.

    Args:
        card: the card as it is; empty where there is none.
        samples: files that are pushed.
        facts: title and contact.

    Raises:
        ValueError: the metadata of the card as it is cannot be read.
    """
    metadata, text = _parts(card)
    if not metadata:
        metadata = {"pretty_name": facts.title, "viewer": False}
    if samples:
        metadata["configs"] = _configs(metadata.get("configs"), samples)
        metadata.pop("viewer", None)  # without samples there is nothing that it could show
    head = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    return f"{_FENCE}{head}{_FENCE}{_text(text, facts)}"


def _parts(card: str) -> tuple[dict[str, Any], str]:
    card = card.removeprefix("\ufeff").replace("\r\n", "\n")
    if not card.startswith(_FENCE):
        return {}, card
    head, fence, text = card.removeprefix(_FENCE).partition(f"\n{_FENCE}")
    try:
        found = yaml.safe_load(head) if fence else None
    except yaml.YAMLError as error:
        raise ValueError(f"the metadata of its {CARD} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"the metadata of its {CARD} are no mapping: mend it, or push into another repository")
    return found, text


def _configs(stated: Any, samples: Sequence[SamplesFile]) -> list[dict[str, Any]]:
    """Add files to the configurations of a card: one for each model and task, a split for each run, and the latest."""
    entries = [entry for entry in (stated if isinstance(stated, list) else []) if isinstance(entry, dict)]
    configs: dict[str, dict[str, Any]] = {str(entry.get("config_name")): entry for entry in entries}
    for one in samples:
        entry = configs.setdefault(one.config, {"config_name": one.config})
        splits = _splits(entry.get("data_files")) | {one.split: one.path}
        newest = max(splits)
        entry["data_files"] = [{"split": split, "path": splits[split]} for split in sorted(splits)]
        entry["data_files"].append({"split": LATEST, "path": splits[newest]})
    return list(configs.values())


def _splits(files: Any) -> dict[str, Any]:
    found = [one for one in (files if isinstance(files, list) else []) if isinstance(one, Mapping)]
    return {str(one["split"]): one["path"] for one in found if "path" in one and one.get("split") not in (None, LATEST)}


def _text(text: str, facts: CardFacts) -> str:
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    lines = [
        f"# {facts.title}",
        "Evaluations with lmms_eval, a folder for each model: `DATE_results.json` holds the results of a run, "
        "`DATE_samples_TASK.jsonl` its samples of a task, a line for each.",
        "The samples of a task are a configuration `MODEL__TASK`, with a split for each run; "
        f"`{LATEST}` is the newest one.",
        *([f"Leaderboard: {' '.join(facts.leaderboard.split())}"] if facts.leaderboard else []),
        *([f"Contact: {' '.join(facts.contact.split())}"] if facts.contact else []),
    ]
    block = f"{_BEGIN}\n" + "\n\n".join(lines) + f"\n{_END}"
    if begin and end:
        return f"{before}{block}{after}"
    return f"{block}\n" if not text.strip() else f"{text.rstrip()}\n\n{block}\n"

"""Results documents whose parts have other types: what leaves is written without them, or an error is one of ours."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

from lmms_eval.errors import LmmsEvalError
from lmms_eval.exchange.card import card_of
from lmms_eval.exchange.every_eval_ever import Source, export_records
from lmms_eval.exchange.hub_results import hub_results
from lmms_eval.results import load
from lmms_eval.results.run import Run
from tests.exchange.test_card import WHOLE
from tests.results.runs import document, sample, write_run

ODD: tuple[Any, ...] = (None, 3, "x", ["x"], {"x": 3}, [[{}]])
GAP = {"score": 0.1, "plain": 0.5, "gap": 0.4, "interval": {"low": 0.1, "high": 0.7, "method": "tango"}}
PARTS = {
    **WHOLE,
    "controls": {"quiz": {"chance": {"uniform": 0.25}, "no-media": {"acc,none": GAP}}},
    "paired": {"quiz": {"acc,none": {"baseline": "other", "unit": "percent"}}},
    "prompt_variants": {"quiz": {"variants": {"a": {}}, "metrics": {}}},
    "human_scores": {"quiz": {"labels": 3, "judge": 0.5, "corrected": 0.4}},
    "judge_bias": {"quiz": {"length": {"slope": 0.1, "low": 0.0, "high": 0.2}}},
    "variance": {"quiz": {"acc,none": {"questions": 1.0, "answers": 0.5, "judge": None}}},
    "recipe": {"name": "x"},
    "published": {"quiz": [{"metric": "acc,none", "published": 1.0}]},
    "system_instruction_sha": "a" * 64,
    "chat_template_sha": "b" * 64,
    "start_time": 1.0,
    "end_time": 2.0,
    "mmie": {"quiz": {"prompts": {"sha256": {"SA": "c"}}}},
}


def places(part: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the places of all values in a document."""
    for name, value in part.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from places(value, (*above, name))


def leave(run: Run, out: Path) -> None:
    """Write everything that leaves."""
    for write in (
        lambda: card_of(run, {}).html(),
        lambda: hub_results(run, {}).files(),
        lambda: export_records(run, out, Source()),
    ):
        with suppress(LmmsEvalError):
            write()


def test_parts_of_other_types_harm_nothing(tmp_path: Path) -> None:
    whole = document(**PARTS)
    path = write_run(tmp_path / "run", [sample(0), sample(1)], whole)
    read = 0
    for place, odd in zip(places(whole), cycle(ODD), strict=False):
        changed = copy.deepcopy(whole)
        part = changed
        for name in place[:-1]:
            part = part[name]
        part[place[-1]] = odd
        path.write_text(json.dumps(changed))
        with suppress(LmmsEvalError):
            run = load(path)
            read += 1
            leave(run, tmp_path / "eee")
    assert read > 50

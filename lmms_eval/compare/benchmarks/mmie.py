"""MMIE: AVG over samples and the three categories, by the judge's scores from 0 to 6.

A part is a category. Samples are drawn within it, since the benchmark fixes their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lmms_eval.compare.benchmarks.contract import Benchmark, Headlines, Kept, Number, kept, scored
from lmms_eval.compare.matching import Shared
from lmms_eval.compare.strata import MeanPart
from lmms_eval.tasks.mmie.report import PARTS
from lmms_eval.tasks.mmie.scoring import SCORES
from lmms_eval.tasks.mmie.summary import OVERALL, CategoryRow


def _headlines_of(pairs: Sequence[Shared]) -> Iterator[Headlines]:
    """Yield AVG and the categories for ``mmie`` (or its three tasks joined), and for each other set of samples."""
    read = scored("judged,none")
    found = {pair.task: taken for pair in pairs if pair.task.startswith("mmie") and (taken := kept(pair, read)).values}
    whole = {"mmie": found["mmie"]} if "mmie" in found else {name: found[name] for name in PARTS if name in found}
    sets = {name: {name: one} for name, one in found.items() if name not in ("mmie", *PARTS)}
    for title, members in {**({"mmie": whole} if whole else {}), **sets}.items():
        yield _headlines(title, members)


def _headlines(title: str, members: Mapping[str, Kept]) -> Headlines:
    parts: dict[str, MeanPart] = {}
    tasks: dict[str, str] = {}
    category: dict[str, str] = {}
    for task, taken in members.items():
        for tag, part in taken.means(lambda sample: str(sample["category"])).items():
            name = f"{task} {tag}"
            parts[name], tasks[name], category[name] = part, task, tag

    def numbers(means: Mapping[str, float]) -> Mapping[str, float]:
        rows: dict[str, CategoryRow] = {}
        for name, mean in means.items():
            n = parts[name].documents
            for tag in (OVERALL, category[name]):
                rows[tag] = rows.get(tag, CategoryRow()) + CategoryRow(scored=n, total=mean * n)
        return {tag: row.mean for tag, row in rows.items() if row.mean is not None}

    tags = tuple(dict.fromkeys(category.values()))
    shown = (OVERALL, *tags) if len(tags) > 1 else (OVERALL,)
    rows = {tag: Number(f"{title} {tag}", "official", unit="", within=SCORES) for tag in shown}
    return Headlines(rows, parts, numbers, tasks, {task: taken.pairing for task, taken in members.items()})


BENCHMARK = Benchmark(_headlines_of)

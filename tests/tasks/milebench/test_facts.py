from __future__ import annotations

from collections import Counter

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.facts import datasets, find


def test_the_table_holds_the_papers_figures() -> None:
    found = list(datasets().values())
    assert len(found) == 29 and sum(facts.samples for facts in found) == 6440
    assert Counter(facts.set for facts in found) == {"realistic": 26, "diagnostic": 3}
    assert Counter(facts.category for facts in found) == {"temporal": 13, "semantic": 13, "needle": 2, "retrieval": 1}
    assert sum(facts.has_adversarial for facts in found) == 26
    assert {facts.name for facts in found if facts.metric == "rouge_l"} == {
        "Spot-the-Diff", "CLEVR-Change", "IEdit", "ALFRED",
    }  # fmt: skip
    assert all(
        facts.task == facts.name.lower() and facts.label.replace("-", "").lower() == facts.group for facts in found
    )
    assert {facts.part: facts.part_gb for facts in found} == {0: 3.97, 1: 2.63, 2: 2.02, 3: 2.46, 4: 2.51, 5: 3.37}


def test_names_are_written_as_in_the_data() -> None:
    assert find("nuscenes").label == "S-5"
    with pytest.raises(DataError, match="no data set 'tqa'"):
        find("tqa")

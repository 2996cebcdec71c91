from __future__ import annotations

import random

from lmms_eval.tasks.yaml.functions import Seeding
from lmms_eval.utils.answer_reading import RUN_SEED


def test_scoring_finds_the_runs_seed_and_a_generator_of_the_document() -> None:
    seeding = Seeding(7, "t", ())
    drawn = []
    for doc_id in (0, 1, 0):
        with seeding.scoring(doc_id):
            drawn.append(random.random())
            assert RUN_SEED.get() == 7
    assert drawn[0] == drawn[2] != drawn[1]
    assert RUN_SEED.get() == 0


def test_the_seed_is_given_back_after_an_error() -> None:
    try:
        with Seeding(7, "t", ()).scoring(0):
            raise RuntimeError
    except RuntimeError:
        assert RUN_SEED.get() == 0

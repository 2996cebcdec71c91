from __future__ import annotations

import pytest

from lmms_eval.tasks.mmie import utils
from lmms_eval.tasks.mmie.utils import exact_match, normalise, segments_of, segments_text, token_f1


def test_sets_of_tokens() -> None:
    assert token_f1("a b c", "c b a a") == 1
    assert token_f1("one two three", "one four") == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))
    assert token_f1("", "") == token_f1(None, "x") == token_f1("x", None) == 0
    assert exact_match("", None) == 1 and exact_match("It's 3.5!", " its  35 ") == 1


def test_normalised_text_keeps_placeholders() -> None:
    assert normalise(" The <image>,\n\tCAT! ") == "the <image> cat"


def test_documents_and_raw_records_have_one_text() -> None:
    segments = [{"text": " Look ", "image": "a.png"}, {"text": None, "image": None}, {"text": "End", "image": ""}]
    raw = {"conversations": [{"from": "human", "content": []}, {"from": "human", "content": segments}]}
    document = {"question": segments, "gt_answer": segments[2:]}
    assert (
        segments_text(segments_of(raw, "human"))
        == segments_text(segments_of(document, "human"))
        == "Look\n<image>\nEnd"
    )
    assert utils.f1_doc_to_target(document) == "End"
    assert utils.f1_doc_to_text(document, {"pre_prompt": "<", "post_prompt": ">"}) == "<Look\n<image>\nEnd>"
    assert utils.f1_process_results(document, ["end."]) == {"mmie_f1": 1.0, "mmie_exact_match": 1.0}
    assert utils.f1_process_results(document, []) == {"mmie_f1": 0.0, "mmie_exact_match": 0.0}

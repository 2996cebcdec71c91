from lmms_eval.tasks.mmie.submission import feedback_from_temporary

RECORDS = [
    {"id": "SA-0", "model": "m", "question": "q", "answer": "a", "gt_answer": None, "images": []},
    {"id": "SA-0", "model": "m", "question": "q2", "answer": "a2", "gt_answer": None, "images": []},
    {"id": "SA-1", "model": "m", "question": "q", "answer": "a", "gt_answer": None, "images": []},
]


def told(*texts):
    return [
        dict(record) if text is None else {**record, "gpt_feedback": text}
        for record, text in zip(RECORDS, texts, strict=False)
    ]


def test_replies_up_to_the_first_gap():
    assert feedback_from_temporary(told("f", "", "g"), RECORDS).feedback == {0: "f", 1: "", 2: "g"}
    assert feedback_from_temporary(told("f", None, "g"), RECORDS).feedback == {0: "f"}


def test_another_content_under_the_same_id_is_not_taken():
    changed = [{**RECORDS[0], "answer": "edited"}, *RECORDS[1:]]
    found = feedback_from_temporary(told("f", "g", "h"), changed)
    assert found.feedback == {1: "g", 2: "h"}
    assert found.mismatches == 1


def test_entries_beyond_the_data_and_other_content():
    assert feedback_from_temporary(told("f", "g", "h"), RECORDS[:1]).mismatches == 2
    for content in (None, 5, "x", {"a": 1}, [5], [{"gpt_feedback": 3}]):
        found = feedback_from_temporary(content, RECORDS)
        assert (found.feedback, found.mismatches) == ({}, 0)

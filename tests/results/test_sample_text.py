from __future__ import annotations

from lmms_eval.results.sample import Sample
from lmms_eval.results.sample_text import sample_text, samples_table
from tests.results.runs import FAILED, sample


def test_one_sample_tells_everything_in_order() -> None:
    video = {"type": "video", "path": "/m/v.mp4", "width": 4, "height": 3, "times": [0, 1.5]}
    record = sample(1, sent_media=[video], judge=[{"name": "q", "reply": "right", "score": 1}], drew=True)
    text = sample_text(Sample("quiz", record))
    pieces = [
        "quiz, document 1: scored, filter none", "--- prompt\nquestion 1",
        "--- media\nvideo: /m/v.mp4, 4 x 3, frames at 0 s, 1.5 s", "--- answer\n<think></think>said 1",
        "--- parsed answer\nsaid 1", "--- target\nright", 'acc: 1.0\ngraded: {"score":0.25,"kind":"y"}',
        "--- judge\nname: q\nreply: right\nscore: 1", "11 tokens in, 2 tokens out, 0.50 s, ended by stop, scoring drew",
        "topic: a",
    ]  # fmt: skip
    places = [text.find(piece) for piece in pieces]
    assert -1 not in places
    assert places == sorted(places)


def test_kept_pictures_have_their_path_and_counts_no_line() -> None:
    media = [
        {"type": "image", "stored": ["media/a.png"], "width": 4, "height": 3},
        {"type": "image", "path": "/m/b.png"},
    ]
    tokens = [{"input_tokens": 7, "output_tokens": 1, "reasoning_tokens": 0}]
    record = sample(1, sent_media=media, token_counts=tokens)
    text = sample_text(Sample("quiz", record | {"scored": 1.0, "submission": {"id": 1}}), lambda place: f"out/{place}")
    assert "--- media\nimage: out/media/a.png, 4 x 3\nimage: /m/b.png\n" in text
    assert "acc: 1.0" in text and "scored: 1" not in text and "submission" not in text
    assert "\n7 tokens in, 1 token out, " in text and "reasoning" not in text


def test_thoughts_are_folded_and_apart_from_the_answer() -> None:
    thoughts = "begin " + "x" * 1000 + " end"
    record = sample(1, resps=f"<think>{thoughts}</think>\n\nsaid 1", thoughts=thoughts)
    text = sample_text(Sample("quiz", record))
    assert "--- thoughts\nbegin xxx" in text and "xxx end\n\n--- answer\nsaid 1\n\n--- target" in text
    assert "... (610 more characters: --json) ..." in text and "x" * 300 not in text
    cut = {**sample(1, resps="<think>hm", filtered_resps="", thoughts="hm"), "blank": "truncated in thought"}
    text = sample_text(Sample("quiz", cut))
    assert "quiz, document 1: scored, filter none, blank" in text
    assert "--- thoughts\nhm\n\n--- no answer\ntruncated in thought\n" in text and "--- answer" not in text
    two = sample(
        1, raw_resps=["<think>a</think>one", "two"], repeats=[{}, {}], thoughts=["a", None], blank=[None, None]
    )
    text = sample_text(Sample("quiz", two))
    assert "--- repeat 1\n[thoughts: a]\none" in text and "--- repeat 2\ntwo" in text


def test_a_failed_sample_tells_its_reason() -> None:
    assert "--- reason\ntimeout" in sample_text(Sample("quiz", FAILED))
    assert "answer" not in sample_text(Sample("quiz", FAILED))


def test_a_table_of_samples_is_one_line_each_and_escapes() -> None:
    text = samples_table(
        [Sample("quiz", sample(1, filtered_resps="a|b\n\x1b[2J<x>" + "y" * 200)), Sample("quiz", FAILED)]
    )
    assert len(text.splitlines()) == 4
    assert "\x1b" not in text
    assert "y" * 70 not in text

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.engine.prompts import content_fingerprint
from lmms_eval.errors import ModelError
from lmms_eval.judges import JudgeOptions, ask, open_judge
from lmms_eval.judges.prompts import user_turn
from lmms_eval.storage.lines import sealed
from tests.cases import for_each


def write(path: Path, *rows: dict[str, object]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)))
    return f"replay:{path}"


def said(name: str, *texts: str, retries: int = 0) -> list[str | None]:
    questions = [JudgeQuestion("q", lambda text=text: user_turn(text), str.isdigit) for text in texts]
    return [verdict.text for verdict in ask(open_judge(JudgeOptions(name), {}), questions, retries)]


def test_replies_by_prompt_by_id_and_by_both(tmp_path: Path) -> None:
    key = content_fingerprint(user_turn("a"))
    name = write(
        tmp_path / "r.jsonl",
        {"prompt": key, "text": "1"},
        {"id": "1/judge/q/0", "text": "2"},
        {"id": "2/judge/q/0", "prompt": "0" * 16, "text": "3"},
        {"id": "3/judge/q/0", "error": {"kind": "timeout"}},
    )
    assert said(name, "a", "b", "c", "a") == ["1", "2", None, "1"]  # the third line is about another prompt


def test_attempts_follow_each_other(tmp_path: Path) -> None:
    key = content_fingerprint(user_turn("a"))
    name = write(tmp_path / "r.jsonl", {"prompt": key, "text": "hm"}, {"prompt": key, "text": "5"})
    assert said(name, "a", retries=1) == ["5"]


def test_of_a_journal_those_lines_count_that_fit_their_checksums(tmp_path: Path) -> None:
    lines = [
        sealed(json.dumps({"prompt": content_fingerprint(user_turn(text)), "text": "5"}).encode()) for text in "ab"
    ]
    (tmp_path / "r.jsonl").write_bytes(lines[0].replace(b'"5"', b'"4"') + b"\n" + lines[1] + lines[0][:20])
    assert said(f"replay:{tmp_path / 'r.jsonl'}", "a", "b") == [None, "5"]


@for_each("line", ["{", "[]", '{"text": "a"}', '{"id": "x"}', '{"id": "x", "text": 3}'])
def test_other_lines_are_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(f'{{"id": "a", "text": "b"}}\n{line}\n')
    with pytest.raises(ModelError, match="line 2"):
        open_judge(JudgeOptions(f"replay:{tmp_path / 'r.jsonl'}"), {})
    with pytest.raises(ModelError, match="cannot read"):
        open_judge(JudgeOptions("replay:absent.jsonl"), {})

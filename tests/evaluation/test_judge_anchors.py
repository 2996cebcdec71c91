"""Anchors of a judge: drawn from a run, judged again by a stub that has shifted or not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.evaluation.judge_anchors import shift_of
from lmms_eval.stats import Interval
from lmms_eval.stats.differences import flip_test
from lmms_eval.utils.numbers import ScoreRange
from tests.evaluation.judged_kit import rated_task
from tests.faults.command import Ended, in_process

DOCUMENTS, ITEMS = 60, 40


class Judge:
    """A judge on loopback that rates by the text after ``ANSWER=``, with a shift and with noise."""

    def __init__(self) -> None:
        self.shift = self.noise = 0
        self.fault = ""
        self.asked = 0
        judge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                text = body["messages"][-1]["content"]
                text = text if isinstance(text, str) else text[-1]["text"]
                judge.asked += 1
                rating = int(text.rpartition("ANSWER=")[2])
                rating += judge.noise * (1 if sum(map(ord, text)) % 2 else -1) + judge.shift
                reply = judge.fault or str(max(0, min(9, rating)))
                message = {"role": "assistant", "content": reply}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                data = json.dumps({"id": "x", "model": body["model"], "choices": [choice]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture(scope="module")
def server() -> Iterator[Judge]:
    judge = Judge()
    yield judge
    judge.server.shutdown()
    judge.server.server_close()


@pytest.fixture
def judge(server: Judge) -> Judge:
    server.shift = server.noise = server.asked = 0
    server.fault = ""
    return server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, server: Judge) -> Path:
    """A run and its anchors."""
    folder = tmp_path_factory.mktemp("anchors")
    rated_task(folder / "tasks", DOCUMENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        ended = in_process(
            "--model", "baseline", "--model_args", "strategy=gold", "--tasks", "rated", "--include_path",
            folder / "tasks", "--output_path", folder / "out", "--log_samples", "--judge_model", "jury",
            "--judge_base_url", server.url,
        )  # fmt: skip
    assert ended.code == 0, ended.shown
    ended = in_process("judge", "anchors", folder / "out", "--items", str(ITEMS), "--out", folder / "anchors.json")
    assert ended.code == 0, ended.shown
    assert "40 answers of rated with the scores of jury, drawn at random" in ended.out
    return folder


def checked(folder: Path, *words: str, file: Path | None = None) -> Ended:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        return in_process("judge", "check", file or folder / "anchors.json", *words)


def test_the_file_holds_prompts_and_scores(folder: Path) -> None:
    content = json.loads((folder / "anchors.json").read_text())
    assert (content["task"], content["judge"], len(content["items"])) == ("rated", "jury", ITEMS)
    item = content["items"][0]
    (verdict,) = item["verdicts"]
    assert item["score"] == item["doc_id"] % 10 == int(verdict["text"])
    assert f"ANSWER={item['doc_id'] % 10}" in verdict["asked"][0]["content"][-1]["text"]
    again = in_process("judge", "anchors", folder / "out", "--items", str(ITEMS), "--out", folder / "again.json")
    assert again.code == 0 and (folder / "again.json").read_bytes() == (folder / "anchors.json").read_bytes()
    other = in_process("judge", "anchors", folder / "out", "--items", "9", "--seed", "1", "--out", folder / "o.json")
    assert other.code == 0, other.shown


def test_the_same_judge_has_not_drifted(folder: Path, judge: Judge) -> None:
    before = sorted((folder / "out").rglob("*"))
    ended = checked(folder)
    assert ended.code == 0 and judge.asked == ITEMS, ended.shown
    assert "shift +0.0000" in ended.out and "100.0% of the scores equal, kappa 1.00" in ended.out
    assert "no drift: not p below 0.05" in ended.out
    assert sorted((folder / "out").rglob("*")) == before, "the run stays as it is"


def test_a_shifted_judge_has_drifted(folder: Path, judge: Judge) -> None:
    judge.shift = -1
    ended = checked(folder)
    assert ended.code == 4, ended.shown
    assert "40 answers judged again by jury" in ended.out and "drift: p is below 0.05" in ended.out
    assert "shift -0." in ended.out and "p <0.0001 (permutation" in ended.out
    ended = checked(folder, "--margin", "2")
    assert ended.code == 0 and "no drift: not p below 0.05 and the shift beyond 2" in ended.out
    ended = checked(folder, "--judge_model", "other", "--judge_base_url", judge.url, "--judge_args", "max_retries=0")
    assert ended.code == 4 and "judged again by other" in ended.out, ended.shown


def test_noise_alone_is_no_drift(folder: Path, judge: Judge) -> None:
    judge.noise = 1
    ended = checked(folder, "--alpha", "0.001")
    assert ended.code == 0 and "0% of the scores equal" in ended.out, ended.shown
    assert "100.0% of the scores equal" not in ended.out


def test_the_same_noisy_judge_is_rarely_an_alarm() -> None:
    """A judge that gives 0 in place of 10 in a tenth of the answers both times: at most 5 % alarms at 0.05."""
    generator = np.random.default_rng(3)

    def alarms(before: float, now: float) -> float:
        drawn = (10.0 * (generator.random((300, 40)) > share) for share in (now, before))
        return sum(flip_test(a - b, 1000, 0)[0] < 0.05 for a, b in zip(*drawn, strict=True)) / 300

    assert alarms(0.1, 0.1) <= 0.05 < 0.9 < alarms(0.1, 0.5)


def test_few_skewed_scores_are_compared_by_flips() -> None:
    """Gaffke's test, which assumes nothing, needs far more answers; its interval stays."""
    before = [10.0] * 20
    found = shift_of([*before[:12], *[1.0] * 8], before, ScoreRange(0, 10))
    assert (found.test, found.p) == ("permutation exact", 2 / 2**8) and found.value == -3.6
    assert isinstance(found.interval, Interval) and found.interval.method == "gaffke"


def test_bad_input_is_one_line(folder: Path, judge: Judge, tmp_path: Path) -> None:
    content = json.loads((folder / "anchors.json").read_text())

    def changed(name: str, **parts: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({**content, **parts}))
        return path

    item = {**content["items"][0], "verdicts": [{**content["items"][0]["verdicts"][0], "prompt": "0" * 16}]}
    hidden = {**content["arguments"], "judge_args": "api_key=[REDACTED]"}
    (tmp_path / "list.json").write_text("[]")
    for path, shown in (
        (tmp_path / "none.json", "cannot be read"),
        (tmp_path / "list.json", "is no file of anchors"),
        (changed("task.json", task="gone"), "gone"),
        (changed("few.json", items=content["items"][:1]), "2 or more items"),
        (changed("twice.json", items=content["items"][:1] * 2), "different documents"),
        (changed("torn.json", items=[{"doc_id": 1}]), "damaged"),
        (
            changed("prompt.json", items=[item, *content["items"][1:]]),
            "1 of 40 prompts are no longer those of the file",
        ),
        (changed("key.json", arguments=hidden), "keeps no keys"),
    ):
        ended = checked(folder, file=path)
        assert ended.code == 2 and shown in ended.err, ended.shown
        assert len([line for line in ended.err.splitlines() if "error:" in line]) == 1, ended.err
    judge.fault = "no idea"
    ended = checked(folder, "--judge_retries", "0", "--judge_base_url", judge.url)
    assert ended.code == 4 and "40 answers have a reply that cannot be read" in ended.out, ended.shown
    ended = checked(folder, "--judge_base_url", "http://127.0.0.1:9/v1", "--judge_args", "max_retries=0")
    assert ended.code == 2 and "0 of 40 answers have a score now: " in ended.err and "127.0.0.1" in ended.err
    for words, shown in (
        (("anchors", folder / "out", "--items", "61"), "rated has 60 judged documents with one answer in text"),
        (("anchors", folder / "out", "--items", "1"), "2 or more"),
        (("anchors", folder / "out", "--items", "3", "--out", folder / "anchors.json"), "exists"),
        (("anchors", folder / "out", "--items", "3", "--task", "other"), "no samples of a task 'other'"),
        (("check", folder / "anchors.json", "--alpha", "2"), "between 0 and 1"),
        (("check", folder / "anchors.json", "--margin", "-1"), "from 0 on"),
        (("check", folder / "anchors.json", "--judge_args", "max_retries=0"), "judge"),
    ):
        ended = in_process("judge", *words)
        assert ended.code == 2 and shown in ended.err, ended.shown

"""Tasks of a pack by lm-eval's rules through the command line: run, cut short, resumed, compared and reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill_resume import final_state, is_complete
from examples.build_tiny_model import build_tiny_vlm
from lmms_eval.tasks.packs.store import VARIABLE
from tests.faults.command import Ended, in_process, journal, lmms_eval, results
from tests.tasks.kit import Function, write_rows, write_yaml

ROWS = [
    {"q": f"What is {n} plus {n}?", "a": str(2 * n), "options": [str(2 * n), str(2 * n + 1)], "label": 0}
    for n in range(1, 9)
]
BASE: dict[str, Any] = {
    "dataset_path": "json", "dataset_kwargs": {"data_files": {"train": "rows.jsonl", "test": "rows.jsonl"}},
    "test_split": "test", "doc_to_text": "{{q}}\nReply:", "doc_to_target": "a", "metadata": {"version": 1.5},
}  # fmt: skip
CHOICE = {**BASE, "output_type": "multiple_choice", "doc_to_choice": "options", "doc_to_target": "label"}
NUMBER = [{"name": "number", "filter": [{"function": "regex", "regex_pattern": r"(\d+)"}, {"function": "take_first"}]}]
TASKS: dict[str, dict[str, Any]] = {
    "pk_choice": {**CHOICE, "metric_list": [{"metric": "acc"}, {"metric": "acc_bytes"}]},
    "pk_mutual": {**CHOICE, "metric_list": [{"metric": "acc_mutual_info"}]},
    "pk_likelihood": {**BASE, "output_type": "loglikelihood", "doc_to_target": " {{a}}"},
    "pk_generation": {**BASE, "filter_list": NUMBER, "generation_kwargs": {"until": ["\n"], "max_gen_toks": 5}},
    "pk_shots": {**CHOICE, "training_split": "train", "num_fewshot": 2, "description": "Sums.\n\n"},
    "pk_prefix": {**CHOICE, "gen_prefix": "It is"},
    "pk_function": {**BASE, "metric_list": [{"metric": Function("utils.same")}]},
    "pk_class": {"class": Function("own.Sums")},
    "pk_rolling": {**BASE, "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{q}} {{a}}"},
    "pk_code": {
        **BASE, "doc_to_text": "def double():", "doc_to_target": "def double(): return {{a}}", "unsafe_code": True,
        "process_results": Function("utils.passes"), "generation_kwargs": {"until": ["\n\n"], "max_gen_toks": 5},
        "metric_list": [{"metric": "pass@1", "aggregation": "mean", "higher_is_better": True}],
    },
}  # fmt: skip
GROUP = {
    "group": "pk_all", "aggregate_metric_list": [{"metric": "acc"}],
    "task": ["pk_choice", {"group": "pk_inner", "task": [{"task": "pk_shots", "num_fewshot": 1}]}],
}  # fmt: skip
UTILS = """
import evaluate

code_eval = evaluate.load("code_eval")


def same(references, predictions):
    return float(references == predictions)


def passes(doc, results):
    test = f"assert double() == {doc['a']}"
    return {"pass@1": code_eval.compute(references=[test], predictions=[[results[0]]], k=[1])[0]["pass@1"]}
"""
OWN = """
import json
from pathlib import Path

import datasets
from lm_eval.api.instance import Instance
from lm_eval.api.task import ConfigurableTask


def mean(items):
    return sum(items) / len(items)


class Sums(ConfigurableTask):
    def download(self, dataset_kwargs=None):
        lines = Path(__file__).with_name("rows.jsonl").read_text().splitlines()
        self.dataset = {"test": datasets.Dataset.from_list([json.loads(line) for line in lines])}

    def has_test_docs(self):
        return True

    def test_docs(self):
        return self.dataset["test"]

    def doc_to_text(self, doc):
        return doc["q"]

    def doc_to_target(self, doc):
        return doc["a"]

    def construct_requests(self, doc, ctx, **kwargs):
        return [
            Instance("generate_until", doc, (ctx, {"until": ["."]}), 0, metadata=kwargs["metadata"]),
            Instance("loglikelihood", doc, (ctx, doc["a"]), 1, metadata=kwargs["metadata"]),
        ]

    def process_results(self, doc, results):
        return {"right": float(results[0] == doc["a"]), "likely": float(results[1][1])}

    def aggregation(self):
        return {"right": mean, "likely": mean}
"""
NAMES = ",".join(["pk_all", *(name for name in TASKS if name not in ("pk_choice", "pk_shots"))])


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packs, with one of small tasks."""
    root = tmp_path_factory.mktemp("packs")
    folder = root / "source" / "lm_eval" / "tasks"
    folder.mkdir(parents=True)
    write_rows(folder, ROWS)
    for name, keys in TASKS.items():
        write_yaml(folder / f"{name}.yaml", {"task": name, **keys})
    write_yaml(folder / "group.yaml", GROUP)
    (folder / "utils.py").write_text(UTILS, encoding="utf-8")
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    added = in_process("packs", "add", root / "source", "--name", "small", "--trust", **{VARIABLE: str(root / "packs")})
    assert added.code == 0 and "10 tasks, 1 groups" in added.out, added.shown
    return root / "packs"


def evaluate(pack: Path, out: Path, *more: str, strategy: str = "gold") -> Ended:
    out.mkdir(exist_ok=True)
    words = ["--model", "baseline", "--model_args", f"strategy={strategy}", "--tasks", NAMES, "--output_path", str(out)]
    with chdir(out):
        done = in_process(*words, "--log_samples", *more, **{VARIABLE: str(pack)})
    assert done.code == 0, done.shown[-3000:]
    return done


def test_every_kind_of_task_has_its_score(pack: Path, tmp_path: Path) -> None:
    evaluate(pack, tmp_path / "run")
    document = results(tmp_path / "run")
    found = document["results"]
    scores = {
        "pk_all": "acc,none", "pk_choice": "acc_bytes,none", "pk_mutual": "acc_mutual_info,none",
        "pk_likelihood": "acc,none", "pk_generation": "exact_match,number", "pk_shots": "acc_norm,none",
        "pk_prefix": "acc,none", "pk_function": "same,none", "pk_class": "right,none",
        "pk_code": "pass@1,none", "pk_rolling": "word_perplexity,none",
    }  # fmt: skip
    assert {name: found[name][key] for name, key in scores.items()} == dict.fromkeys(scores, 1.0)
    assert found["pk_likelihood"]["perplexity,none"] == 1.0
    assert document["versions"]["pk_choice"] == 1.5 and document["n-shot"]["pk_shots"] == 1
    assert found["pk_function"]["same_stderr,none"] == 0.0
    assert found["pk_class"]["right_stderr,none"] == "N/A"  # lm-eval has no error of a task's own aggregation


def test_a_run_that_was_cut_short_asks_only_what_is_missing(pack: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    evaluate(pack, out)
    whole, asked = results(out)["results"], sorted(line["id"] for line in journal(out))
    for file in out.rglob("responses-*.jsonl"):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[: len(lines) // 2]) + lines[-1][:7])  # as a kill leaves it
    for file in [*out.rglob("2*_*.json*")]:
        file.unlink()
    left = len(journal_ids(out))
    evaluate(pack, out)
    assert results(out)["results"] == whole
    assert 0 < left < len(asked) and sorted(journal_ids(out)) == asked, "no request was asked twice"


def journal_ids(out: Path) -> list[str]:
    """The ids of all journaled responses; the line that a kill cut off is left out."""
    found = []
    for path in sorted(out.rglob("responses-*.jsonl")):
        for line in path.read_text().splitlines():
            if line.endswith("}"):
                found.append(json.loads(line)["id"])
    return found


def test_runs_are_compared_and_reported(pack: Path, tmp_path: Path) -> None:
    evaluate(pack, tmp_path / "gold")
    evaluate(pack, tmp_path / "fixed", strategy="constant,text=2")
    with chdir(tmp_path):
        compared = in_process("compare", "gold", "fixed")
        reported = in_process("report", "gold", "--out", "pages")
    assert compared.code == 0 and "|pk_code     |pass@1 ↑    |100.00%|0.00%" in compared.out, compared.shown
    assert reported.code == 0 and list((tmp_path / "pages").rglob("*.html")), reported.shown


def test_conversations_have_their_examples_as_turns(pack: Path, tmp_path: Path) -> None:
    evaluate(pack, tmp_path / "run", "--apply_chat_template", "--limit", "2")
    (file,) = (tmp_path / "run").rglob("*_samples_pk_shots.jsonl")
    roles = [message["role"] for message in json.loads(file.read_text().splitlines()[1])["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("form", ["plain", "chat"])
def test_ten_tasks_of_a_local_model_are_killed_and_resumed(pack: Path, tmp_path: Path, form: str) -> None:
    model = build_tiny_vlm(tmp_path / "tiny")
    chat = ["--apply_chat_template"] if form == "chat" else []

    def words(out: str) -> list[str]:
        arguments = f"pretrained={model},device=cpu,batch_size=1"
        given = ["--model", "hf", "--model_args", arguments, "--tasks", NAMES, "--output_path", str(tmp_path / out)]
        return [*given, "--log_samples", *chat]

    whole = lmms_eval(*words("whole"), **{VARIABLE: str(pack)})
    assert whole.code == 0, whole.shown
    answered = killed_in_the_middle(words("killed"), tmp_path / "killed", pack)
    resumed = lmms_eval(*words("killed"), **{VARIABLE: str(pack)})
    assert resumed.code == 0, resumed.shown
    asked = journal_ids(tmp_path / "killed")
    assert sorted(asked) == sorted(journal_ids(tmp_path / "whole")), "each request has one answer"
    assert 0 < len(answered) < len(asked) and set(answered) <= set(asked), "what was answered is not asked again"
    assert final_state(tmp_path / "killed") == final_state(tmp_path / "whole")
    with chdir(tmp_path):
        compared = in_process("compare", "whole", "killed", "--json", "compared.json")
        reported = in_process("report", "killed", "--out", "pages")
        shown = in_process("show", "killed", "pk_code", "3")
    assert compared.code == reported.code == shown.code == 0, compared.shown + reported.shown + shown.shown
    assert "got other prompts" not in compared.shown and "differ" not in compared.err, compared.shown
    (pair,) = json.loads((tmp_path / "compared.json").read_text())["pairs"]
    assert len(pair["rows"]) >= 18 and not any(row["value"] for row in pair["rows"])
    assert "def double():" in shown.out


def killed_in_the_middle(words: list[str], out: Path, pack: Path) -> list[str]:
    """Send SIGKILL to a run when a third of its requests are answered; returns the ids of these."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", VARIABLE: str(pack)}
    process = subprocess.Popen([sys.executable, "-m", "lmms_eval", *words], env=environment, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(journal_ids(out)) < 40:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL and not is_complete(out)
    return journal_ids(out)

"""A real language model, asked as lm-eval asks it: equal answers, likelihoods and scores.

lm-eval is installed beside and run as it is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.config import build_config
from lmms_eval.evaluation.run import run
from tests.engines.capitals import CHOSEN, CITIES, GENERATED, write_lm_eval_tasks, write_tasks
from tests.engines.conftest import build
from tests.engines.models import environment

TOLERANCE = 2e-3
"""Of a logarithm of a probability in float32, whose batches differ."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an evaluation gave."""

    answers: Mapping[int, str]
    likelihoods: Mapping[int, list[tuple[float, bool]]]
    """Logarithm of the probability of each choice, and whether it is the likeliest text."""
    scores: Mapping[str, float]


def rows_of(folder: Path, pattern: str) -> list[dict[str, Any]]:
    (file,) = folder.rglob(pattern)
    return [json.loads(line) for line in file.read_text().splitlines()]


def lm_eval(model: Path, folder: Path, *options: str) -> Outcome:
    """lm-eval's own outcome."""
    tasks = write_lm_eval_tasks(folder / "tasks")
    command = [
        sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={model},dtype=float32",
        "--tasks", f"{GENERATED},{CHOSEN}", "--include_path", str(tasks), "--device", "cpu", "--batch_size", "1",
        "--output_path", str(folder / "out"), "--log_samples", *options,
    ]  # fmt: skip
    done = subprocess.run(
        command, env={**environment(), "HF_DATASETS_OFFLINE": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (results,) = (folder / "out").rglob("results_*.json")
    scores = json.loads(results.read_text())["results"][CHOSEN]
    return Outcome(
        {row["doc_id"]: row["filtered_resps"][0].strip() for row in rows_of(folder / "out", f"samples_{GENERATED}*")},
        {
            row["doc_id"]: [(float(value), greedy == "True") for value, greedy in row["filtered_resps"]]
            for row in rows_of(folder / "out", f"samples_{CHOSEN}*")
        },
        {name: scores[f"{name},none"] for name in ("acc", "acc_norm")},
    )


def ours(model: Any, name: str, folder: Path) -> Outcome:
    """The outcome of this package with a model that is there."""
    values = {
        "model": name, "tasks": f"{GENERATED},{CHOSEN}", "include_path": str(write_tasks(folder / "tasks")),
        "output_path": str(folder / "out"), "log_samples": True, "verbosity": "ERROR",
    }  # fmt: skip
    report = run(build_config(values), model)
    assert report.exit_code == 0, report.results["outcomes"]
    scores = report.results["results"][CHOSEN]
    return Outcome(
        {row["doc_id"]: row["filtered_resps"] for row in rows_of(folder / "out", f"*_samples_{GENERATED}.jsonl")},
        {
            row["doc_id"]: [(-float(loss), greedy) for loss, greedy in row["filtered_resps"]]
            for row in rows_of(folder / "out", f"*_samples_{CHOSEN}.jsonl")
        },
        {name: scores[f"{name},none"] for name in ("acc", "acc_norm")},
    )


def assert_equal(found: Outcome, wanted: Outcome) -> None:
    assert len(wanted.answers) == len(wanted.likelihoods) == len(CITIES) == 32
    assert found.answers == wanted.answers
    for number, pairs in wanted.likelihoods.items():
        assert [value for value, _ in found.likelihoods[number]] == pytest.approx(
            [value for value, _ in pairs], abs=TOLERANCE
        )
        assert [greedy for _, greedy in found.likelihoods[number]] == [greedy for _, greedy in pairs]
    assert found.scores == pytest.approx(wanted.scores)


@pytest.fixture(scope="module")
def templated(smol: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return lm_eval(smol, tmp_path_factory.mktemp("templated"), "--apply_chat_template")


@pytest.fixture(scope="module")
def plain(smol: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return lm_eval(smol, tmp_path_factory.mktemp("plain"))


def test_the_comparison_can_fail(templated: Outcome, plain: Outcome) -> None:
    """Some are right and some are wrong, and a template changes what is said."""
    print(f"with a template {templated.scores}, plain {plain.scores}")
    assert 0 < templated.scores["acc_norm"] < 1 and 0 < plain.scores["acc_norm"] < 1
    assert templated.likelihoods != plain.likelihoods and len(set(templated.answers.values())) > 20


@pytest.mark.parametrize("batch_size", [1, 8])
def test_hf_text_with_the_models_template(templated: Outcome, smol: Path, tmp_path: Path, batch_size: int) -> None:
    model = build("hf_text", pretrained=str(smol), dtype="float32", device="cpu", batch_size=batch_size)
    assert_equal(ours(model, "hf_text", tmp_path), templated)


def test_hf_text_with_the_plain_context(plain: Outcome, smol: Path, tmp_path: Path) -> None:
    model = build("hf_text", pretrained=str(smol), dtype="float32", device="cpu", batch_size=8, chat_template="none")
    assert_equal(ours(model, "hf_text", tmp_path), plain)


def test_vllm_with_the_models_template(templated: Outcome, vllm_text: Any, tmp_path: Path) -> None:
    assert_equal(ours(vllm_text, "vllm", tmp_path), templated)


def test_a_server_of_vllm_with_the_models_template(templated: Outcome, text_server: str, tmp_path: Path) -> None:
    assert_equal(ours(build("openai", model="m", base_url=text_server), "openai", tmp_path), templated)


def test_a_server_of_vllm_with_the_plain_context(plain: Outcome, text_server: str, tmp_path: Path) -> None:
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    model = build("openai", model="m", base_url=text_server, api="completions")
    assert_equal(ours(model, "openai", tmp_path), plain)

"""Runs of a task of lm-eval that asks for the likelihoods of whole texts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.build_tiny_model import build_tiny_vlm
from lmms_eval.api.model import Model, RequestStream, lmms
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.cli import packs
from lmms_eval.errors import LmmsEvalError, ModelError
from lmms_eval.evaluator import simple_evaluate
from tests.models.hf.support import build
from tests.models.whole_texts import TEXTS, log_likelihood

TASK = "pages"
YAML = """
task: pages
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
output_type: loglikelihood_rolling
test_split: test
doc_to_text: ""
doc_to_target: "{{page}}"
metric_list: [{metric: word_perplexity}, {metric: byte_perplexity}, {metric: bits_per_byte}]
"""
PAGES = [*TEXTS, "one more"]


@pytest.fixture(autouse=True)
def _pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack of lm-eval with one task, and a folder of state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LMMS_EVAL_PACKS", str(tmp_path / "packs"))
    folder, data = tmp_path / "checkout" / "lm_eval" / "tasks", tmp_path / "pages.jsonl"
    folder.mkdir(parents=True)
    data.write_text("".join(json.dumps({"page": page}) + "\n" for page in PAGES), encoding="utf-8")
    (folder / "pages.yaml").write_text(YAML.replace("FILE", str(data)), encoding="utf-8")
    assert packs.run(["add", str(tmp_path / "checkout"), "--name", "lm-eval"]) == 0


class Counting(Model):
    """The log probability of each text is its length, negative; ends the run before the ``last`` one."""

    kinds: frozenset[RequestKind] = frozenset({"loglikelihood_rolling"})

    def __init__(self, last: int = 1000) -> None:
        self.asked: list[Request] = []
        self.last = last

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            for request in requests:
                if len(self.asked) == self.last:
                    raise ModelError("the model is lost")
                self.asked.append(request)
                yield Response(request.id, loglikelihood=-float(len(request.continuation or "")), is_greedy=False)

    def identity(self) -> dict[str, Any]:
        return {"name": "counting"}


def run(model: Any, out: Path, **options: Any) -> dict[str, Any]:
    return dict(simple_evaluate(model, tasks=[f"lm-eval:{TASK}"], output_path=str(out), log_samples=True, **options))


def expected(values: list[float]) -> dict[str, float]:
    total = math.fsum(values)
    words = sum(len(re.split(r"\s+", page)) for page in PAGES)
    size = sum(len(page.encode()) for page in PAGES)
    return {
        "word_perplexity,none": math.exp(-total / words),
        "byte_perplexity,none": math.exp(-total / size),
        "bits_per_byte,none": -total / size / math.log(2),
    }


def numbers(made: dict[str, Any]) -> dict[str, float]:
    row = made["results"][TASK]
    return {name: row[name] for name in ("word_perplexity,none", "byte_perplexity,none", "bits_per_byte,none")}


def test_perplexities_are_those_of_the_tiny_model(tmp_path: Path) -> None:
    folder = build_tiny_vlm(tmp_path / "tiny")
    arguments = f"pretrained={folder},device=cpu,batch_size=4,max_length=32,dry_requests=false"
    made = run("hf", tmp_path / "out", model_args=arguments, check_batch=3)
    loaded = build(folder).loaded
    values = [log_likelihood(loaded.model, loaded.tokenizer, page, 32) for page in PAGES]
    assert numbers(made) == pytest.approx(expected(values), rel=1e-5)
    assert [sample["filtered_resps"] for sample in made["samples"][TASK]] == [
        [pytest.approx(-value, rel=1e-6, abs=1e-5), PAGES[number] == ""] for number, value in enumerate(values)
    ]
    assert (made["batch_check"]["asked"], made["batch_check"]["differing"]) == (3, 0)


def test_an_interrupted_run_asks_only_the_rest(tmp_path: Path) -> None:
    first = Counting(last=3)
    with pytest.raises(LmmsEvalError, match="the model is lost"):
        run(first, tmp_path / "out")
    second = Counting()
    made = run(second, tmp_path / "out")
    asked = [request.doc_id for request in (*first.asked, *second.asked)]
    assert all(request.moves_blanks for request in second.asked), "as lm-eval does"
    assert sorted(asked) == list(range(len(PAGES))) and len(second.asked) == len(PAGES) - 3
    assert numbers(made) == pytest.approx(expected([-float(len(page)) for page in PAGES]))


def test_the_response_cache_answers_the_next_run(tmp_path: Path) -> None:
    cache, models = str(tmp_path / "cache.db"), (Counting(), Counting())
    made = [run(model, tmp_path / f"out{number}", use_cache=cache) for number, model in enumerate(models)]
    assert [len(model.asked) for model in models] == [len(PAGES), 0]
    assert numbers(made[0]) == numbers(made[1])


def test_answers_without_scores(tmp_path: Path) -> None:
    made = run(Counting(), tmp_path / "out", predict_only=True)
    assert [sample["filtered_resps"] for sample in made["samples"][TASK]] == [[len(page), False] for page in PAGES]


def test_a_plugin_of_the_class_interface(tmp_path: Path) -> None:
    class Plugin(lmms):
        def loglikelihood(self, requests: list[Any]) -> Any:
            raise NotImplementedError

        generate_until = generate_until_multi_round = loglikelihood

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            return [-2.0 * len(text) for (text,) in (request.args for request in requests)]

    made = run(Plugin(), tmp_path / "out")
    assert numbers(made) == pytest.approx(expected([-2.0 * len(page) for page in PAGES]))


def test_a_model_that_cannot_is_refused_before_it_is_asked(tmp_path: Path) -> None:
    class Generating(Counting):
        kinds: frozenset[RequestKind] = frozenset({"generate_until"})

    model = Generating()
    with pytest.raises(ModelError, match=r"does not answer.*openai with api=completions and tokenizer=FOLDER"):
        run(model, tmp_path / "out")
    assert not model.asked


def test_replayed_answers_give_the_same_numbers(tmp_path: Path) -> None:
    made = run(Counting(), tmp_path / "out")
    (samples,) = (tmp_path / "out").rglob("*_samples_*.jsonl")
    again = run("replay", tmp_path / "again", model_args=f"path={samples}")
    assert numbers(made) == numbers(again)

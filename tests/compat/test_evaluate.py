"""The metrics that tasks of lm-eval load by ``evaluate.load``."""

from __future__ import annotations

import math
import random
import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.compat.evaluate import CodeEval, load
from lmms_eval.errors import MissingOptionalDependencyError
from lmms_eval.sandbox.policy import Policy, using
from tests.cases import for_each

TEXTS = [
    ("the cat sat on the mat .", "the cat sat on a mat ."),
    ("It's 3.5% of $1,200 -- nearly nothing!", "It's 3.5% of $1,200, nearly nothing!"),
    ("one two three four five six", "one two three five four six seven"),
]
TESTS = "assert f(2) == 4\nassert f(0) == 0"


def code_eval(*programs: str, tests: str = TESTS, **options: Any) -> tuple[dict[str, float], list[str]]:
    shares, found = load("code_eval").compute(predictions=[list(programs)], references=[tests], **options)
    return shares, [row["result"] for _, row in found[0]]


def test_programs_run_in_the_sandbox() -> None:
    programs = (
        "def f(x):\n    return 2 * x\nprint('heard')\n",
        "def f(x):\n    return x",
        "def f(x)",
        "from __future__ import annotations\nimport numpy\ndef f(x: int) -> int:\n    return int(numpy.add(x, x))",
        "def f(x):\n    return 2 * x\nif __name__ == '__main__':\n    raise ValueError",
        "raise SystemExit",
        "open('/etc/passwd')",
    )
    shares, found = code_eval(*programs, k=[1, 2, 7, 8])
    assert [text == "passed" for text in found] == [True, False, False, True, True, False, False]
    assert shares == pytest.approx({"pass@1": 3 / 7, "pass@2": 1 - 6 / 21, "pass@7": 1.0})
    assert found[1] == "failed: AssertionError"
    assert "SyntaxError" in found[2]


def test_a_program_without_end_is_stopped() -> None:
    assert code_eval("while True: pass", k=[1], timeout=0.5) == ({"pass@1": 0.0}, ["timed out"])


def test_nothing_runs_if_nothing_confines_it() -> None:
    with using(Policy(probe=list)), pytest.raises(NotEvaluated, match="--allow_unsafe_code"):
        code_eval("def f(x): return 2 * x", k=[1])
    with using(Policy(True, probe=list)):
        assert code_eval("def f(x): return 2 * x", k=[1])[0] == {"pass@1": 1.0}


@for_each(
    ("programs", "options", "message"),
    [
        ("def f(x): ...", {}, "not a list of programs"),
        ([1], {}, "not a list of programs"),
        (["def f(x): ..."], {"timeout": 0}, "not positive"),
        (["def f(x): ..."], {"timeout": math.nan}, "not positive"),
    ],
)
def test_programs_that_are_none(programs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("code_eval").compute(predictions=[programs], references=[TESTS], **options)


def test_bleu_is_that_of_sacrebleu_with_one_reference() -> None:
    import sacrebleu

    answers, golds = zip(*TEXTS, strict=True)
    expected = sacrebleu.corpus_bleu(answers, [golds], smooth_method="none")
    made = load("bleu").compute(predictions=answers, references=golds)
    assert made["bleu"] == pytest.approx(expected.score / 100)
    assert made["precisions"] == pytest.approx([value / 100 for value in expected.precisions])
    assert (made["translation_length"], made["reference_length"]) == (expected.sys_len, expected.ref_len)
    assert made["brevity_penalty"] == pytest.approx(expected.bp)


def test_bleu_of_several_references_counts_the_shortest() -> None:
    made = load("bleu").compute(predictions=["a b c d"], references=[["a b x y z", "c d e"]], max_order=2)
    assert made["precisions"] == [1.0, 2 / 3]
    assert (made["reference_length"], made["brevity_penalty"]) == (3, 1.0)
    smooth = load("bleu").compute(predictions=["a b"], references=["a c"], max_order=2, smooth=True)
    assert smooth["precisions"] == [2 / 3, 1 / 2]


@for_each(("answer", "gold"), [("", "a b"), ("a b", ""), ("", "")])
def test_bleu_of_empty_texts_is_0(answer: str, gold: str) -> None:
    assert load("bleu").compute(predictions=[answer], references=[gold])["bleu"] == 0.0


def test_rouge() -> None:
    pytest.importorskip("rouge_score", reason="extra lm-eval")
    answers, golds = zip(*TEXTS, strict=True)
    rouge = load("rouge", keep_in_memory=True)
    each = rouge.compute(predictions=answers, references=golds, use_aggregator=False)
    assert set(each) == {"rouge1", "rouge2", "rougeL", "rougeLsum"}
    assert each["rouge1"][0] == pytest.approx(10 / 12)
    assert each["rougeL"][2] == pytest.approx(2 * 5 / 13)
    made = rouge.compute(predictions=answers, references=golds)
    assert made == rouge.compute(predictions=answers, references=golds)
    assert made["rouge1"] == pytest.approx(sum(each["rouge1"]) / 3, abs=0.05)
    one = rouge.compute(predictions=["a b"], references=[["a c", "a b"]], rouge_types=["rouge1"])
    assert one == {"rouge1": 1.0}
    letters = rouge.compute(predictions=["ab"], references=["bc"], rouge_types=["rouge1"], tokenizer=list)
    assert letters == {"rouge1": 0.5}


def squad(*rows: tuple[str, float, list[str]], **options: Any) -> dict[str, Any]:
    predictions = [
        {"id": str(number), "prediction_text": text, "no_answer_probability": chance}
        for number, (text, chance, _) in enumerate(rows)
    ]
    references = [
        {"id": str(number), "answers": {"text": golds, "answer_start": [0] * len(golds)}}
        for number, (_, _, golds) in enumerate(rows)
    ]
    made: dict[str, Any] = load("squad_v2").compute(predictions=predictions, references=references, **options)
    return made


def test_squad() -> None:
    rows = [
        ("The bridge", 0.1, ["bridge", "a red bridge"]),
        ("red river", 0.6, ["river"]),
        ("x", 0.9, []),
        ("", 0.2, []),
    ]
    made = squad(*rows)
    assert (made["exact"], made["HasAns_exact"], made["NoAns_exact"]) == (50.0, 50.0, 50.0)
    assert made["f1"] == pytest.approx(100 * (1 + 2 / 3 + 1) / 4)
    assert (made["total"], made["HasAns_total"], made["NoAns_total"]) == (4, 2, 2)
    # No answer but "bridge": right of both without answer.
    assert (made["best_exact"], made["best_exact_thresh"]) == (75.0, 0.1)
    assert (made["best_f1"], made["best_f1_thresh"]) == (pytest.approx(100 * (3 + 2 / 3) / 4), 0.6)
    assert squad(*rows, no_answer_threshold=0.5)["NoAns_exact"] == 100.0
    assert squad(*rows, no_answer_threshold=0.5)["HasAns_f1"] == 50.0


def test_the_best_threshold_is_that_of_a_search_over_all() -> None:
    rows = [("a", 0.3, ["a"]), ("b", 0.2, []), ("c", 0.7, ["c"]), ("d", 0.5, ["e"]), ("f", 0.4, []), ("", 0.1, [])]
    tried = [squad(*rows, no_answer_threshold=limit)["exact"] for limit in (-1.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)]
    assert squad(*rows)["best_exact"] == max(tried)


def test_a_question_without_prediction() -> None:
    references = [{"id": "b", "answers": {"text": ["x"]}}]
    with pytest.raises(ValueError, match="no prediction has the id 'b'"):
        load("squad_v2").compute(
            predictions=[{"id": "a", "prediction_text": "x", "no_answer_probability": 0}], references=references
        )


def test_labels() -> None:
    pytest.importorskip("sklearn", reason="extra lm-eval")
    golds, answers = [0, 1, 1, 2], [0, 1, 2, 2]
    assert load("accuracy").compute(predictions=answers, references=golds) == {"accuracy": 0.75}
    assert load("accuracy").compute(predictions=answers, references=golds, normalize=False) == {"accuracy": 3.0}
    assert load("f1").compute(predictions=[1, 0], references=[1, 1]) == {"f1": pytest.approx(2 / 3)}
    macro = load("f1").compute(predictions=answers, references=golds, average="macro")
    assert macro == {"f1": pytest.approx((1 + 2 / 3 + 2 / 3) / 3)}
    each = load("f1").compute(predictions=answers, references=golds, average=None)["f1"]
    assert list(each) == pytest.approx([1, 2 / 3, 2 / 3])


def test_exact_match() -> None:
    metric = load("exact_match")
    assert metric.compute(predictions=["A", "b"], references=["a", "b"]) == {"exact_match": 0.5}
    assert metric.compute(predictions=["A", "b"], references=["a", "b"], ignore_case=True) == {"exact_match": 1.0}


@for_each("name", ["accuracy", "bleu", "code_eval", "exact_match", "f1", "rouge", "squad_v2", "wer"])
def test_pairs_must_be_there(name: str) -> None:
    metric = load(name)
    with pytest.raises(ValueError, match=f"metric '{name}': 1 predictions for 2 references"):
        metric.compute(predictions=["a"], references=["a", "b"])
    with pytest.raises(ValueError, match="0 predictions"):
        metric.compute(predictions=[], references=[])
    with pytest.raises(TypeError):
        metric.compute(predictions=["a"], references=["a"], unknown=1)
    assert metric.is_confined is isinstance(metric, CodeEval)


def test_wer() -> None:
    texts = {"references": ["a b c", "d"], "predictions": ["a x c d", "D"]}
    assert load("wer").compute(**texts) == 0.75
    assert load("wer").compute(**texts, concatenate_texts=True) == 0.5
    assert load("wer").compute(references=[""], predictions=["a"]) == 1


def test_wer_is_that_of_its_package() -> None:
    jiwer = pytest.importorskip("jiwer", reason="extra dev")
    drawn = random.Random(3)
    signs = ["a", "B", "b.", " ", " ", "  ", "\t", "\n ", "é"]
    for _ in range(200):
        gold, answer = ("".join(drawn.choices(signs, k=drawn.randrange(12))) for _ in range(2))
        if gold.strip():
            expected = jiwer.process_words(gold, answer).wer
            assert load("wer").compute(references=[gold], predictions=[answer]) == pytest.approx(expected), (
                gold,
                answer,
            )


class _Package(ModuleType):
    """A stand-in for ``bert_score``."""

    def score(self, cands: list[str], refs: list[list[str]], **options: Any) -> tuple[Any, str]:
        self.asked = cands, refs, options
        return tuple(torch.tensor([value] * len(cands)) for value in (0.25, 0.5, 0.75)), "tiny_L2"


def test_bertscore_is_that_of_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    package = _Package("bert_score")
    monkeypatch.setitem(sys.modules, "bert_score", package)
    metric = load("bertscore")
    texts = {"predictions": ["a", "b"], "references": ["c", ["d", "e"]]}
    assert metric.compute(**texts, lang="en", batch_size=2) == {
        "precision": [0.25, 0.25], "recall": [0.5, 0.5], "f1": [0.75, 0.75], "hashcode": "tiny_L2"
    }  # fmt: skip
    assert package.asked[:2] == (["a", "b"], [["c"], ["d", "e"]])
    assert package.asked[2] == {
        "lang": "en", "model_type": None, "num_layers": None, "return_hash": True, "batch_size": 2
    }  # fmt: skip
    with pytest.raises(ValueError, match="give lang or model_type"):
        metric.compute(**texts)
    monkeypatch.setitem(sys.modules, "bert_score", None)
    with pytest.raises(MissingOptionalDependencyError, match=r"^bert_score: pip install bert-score$"):
        load("bertscore")


@for_each(("name", "package"), [("bleurt", "bleurt"), ("comet", "comet"), ("user/Judge", "user/Judge")])
def test_other_metrics_are_missing_packages(name: str, package: str) -> None:
    with pytest.raises(MissingOptionalDependencyError, match=f"^{package}: .*metrics that can be loaded: accuracy, "):
        load(name, "a-config", module_type="metric")

"""A stand-in for the package ``evaluate``: the metrics that tasks of lm-eval load by their names.

That package downloads a metric's code from the hub and runs it. These metrics take the same arguments and return the
same keys, and nothing is downloaded.
"""

from __future__ import annotations

import math
import re
import secrets
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import MissingOptionalDependencyError
from lmms_eval.metrics.speech import word_error_rate
from lmms_eval.metrics.text import exact_match
from lmms_eval.sandbox.launcher import Limits, Outcome, Program, SandboxError, run
from lmms_eval.sandbox.policy import SandboxRefused

_PACKAGES = MappingProxyType({"comet": "comet", "meteor": "nltk"})
"""Packages that metrics without a stand-in rest on, if their names differ."""
_TESTED = """\
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()):
    exec({program!r}, {{}})
raise SystemExit({status})
"""
"""Runs a program as a module that is not ``__main__``. A program that exits by itself cannot guess the status."""


class LoadedMetric:
    """A loaded metric.

    Args:
        name: its name.
        score: computes it from predictions and references, which are equally many.
    """

    is_confined = False
    """Whether it runs programs of the model, and only in the sandbox."""

    def __init__(self, name: str, score: Callable[..., Any]) -> None:
        self.name, self._score = name, score

    def compute(self, *, predictions: Iterable[Any], references: Iterable[Any], **options: Any) -> Any:
        """Return the scores by name. Raises ``ValueError`` if there are no pairs, or a list is longer than the other.

        An option that the metric does not know raises ``TypeError``.
        """
        answers, golds = list(predictions), list(references)
        if len(answers) != len(golds) or not answers:
            raise ValueError(f"metric {self.name!r}: {len(answers)} predictions for {len(golds)} references")
        return self._score(answers, golds, **options)


class CodeEval(LoadedMetric):
    """``code_eval``: runs programs with tests in the sandbox (M. Chen et al., "Evaluating large language models
    trained on code", arXiv 2107.03374, 2021)."""

    is_confined = True

    def __init__(self) -> None:
        super().__init__("code_eval", _code_eval)


def load(path: str, *_configuration: Any, **_options: Any) -> LoadedMetric:
    """Return a metric by its name. Raises ``MissingOptionalDependencyError`` if this module does not have it."""
    if path == "code_eval":
        return CodeEval()
    if path == "bertscore":
        _bert_score()  # a task that is built lacks no package
    if path not in _METRICS:
        package = _PACKAGES.get(path, path)
        raise MissingOptionalDependencyError(
            f"{package}: evaluate.load({path!r}) downloads code from the hub and runs it, which is not done here; "
            f"metrics that can be loaded: {', '.join(sorted(('code_eval', *_METRICS)))}"
        )
    return LoadedMetric(path, _METRICS[path])


def _code_eval(
    predictions: Sequence[Sequence[str]], references: Sequence[str], k: Sequence[int] = (1, 10, 100),
    num_workers: int = 4, timeout: float = 3.0,  # noqa: ARG001 - the metric's argument
) -> tuple[dict[str, float], dict[int, list[tuple[int, dict[str, Any]]]]]:  # fmt: skip
    """Return pass@k, and for each problem the outcome of each program.

    Args:
        predictions: for each problem, its programs.
        references: the tests of each problem.
        k: numbers of tries; those above the number of programs of any problem are left out.
        num_workers: without effect: programs of one call run one after the other.
        timeout: seconds of processor time for a program with its tests.

    Raises:
        NotEvaluated: nothing confines programs here, or the sandbox failed.
        ValueError: a problem's programs are not a list of texts, or the time limit is not positive.
    """
    if not timeout > 0:
        raise ValueError(f"metric 'code_eval': timeout={timeout!r} is not positive")
    results: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for task, (programs, tests) in enumerate(zip(predictions, references, strict=True)):
        if isinstance(programs, str) or not all(isinstance(program, str) for program in programs):
            raise ValueError(f"metric 'code_eval': predictions[{task}] is not a list of programs")
        results[task] = []
        for number, program in enumerate(programs):
            found = _ending(f"{program}\n{tests}", timeout)
            row = {"task_id": task, "passed": found == "passed", "result": found, "completion_id": number}
            results[task].append((number, row))
    counts = [(len(rows), sum(row["passed"] for _, row in rows)) for rows in results.values()]
    tries = [k] if isinstance(k, int) else k
    return {
        f"pass@{one}": math.fsum(_pass_at(one, n, right) for n, right in counts) / len(counts)
        for one in tries
        if all(n >= one for n, _ in counts)
    }, results


def _ending(program: str, timeout: float) -> str:
    """Run a program in the sandbox: ``passed``, ``timed out`` or ``failed: REASON``."""
    limits = Limits(cpu_s=math.ceil(timeout), wall_s=timeout + 7.0, output_bytes=1 << 16)
    status = 100 + secrets.randbelow(100)
    try:
        outcome = _run(Program(_TESTED.format(program=program, status=status), packages=("numpy",)), limits)
    except (SandboxRefused, SandboxError) as error:
        raise NotEvaluated(str(error)) from error
    if outcome.status == status and outcome.reason == "nonzero":
        return "passed"
    if outcome.reason in ("cpu", "wall"):
        return "timed out"
    said = outcome.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"failed: {said[-1] if said else outcome.reason}"


def _run(program: Program, limits: Limits) -> Outcome:
    try:
        return run(program, limits)
    except SandboxError:  # the child may have been killed from outside; another one may succeed
        return run(program, limits)


def _pass_at(k: int, n: int, right: int) -> float:
    """Probability that one of ``k`` programs, drawn from ``n`` without replacement, is one of the ``right`` ones."""
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def _bleu(
    predictions: Sequence[str], references: Sequence[str | Sequence[str]],
    tokenizer: Callable[[str], Sequence[str]] | None = None, max_order: int = 4, smooth: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Corpus BLEU, 0 … 1 (Papineni et al. 2002), with the shortest reference as the reference length.

    ``smooth`` adds 1 to matches and possible matches of each order (Lin and Och 2004).
    """
    split = tokenizer or _tokens_13a()
    matches, possible = [0] * max_order, [0] * max_order
    answered = wanted = 0
    for prediction, stated in zip(predictions, references, strict=True):
        answer = split(prediction)
        golds = [split(gold) for gold in ([stated] if isinstance(stated, str) else stated)]
        answered, wanted = answered + len(answer), wanted + min(map(len, golds))
        for order in range(1, max_order + 1):
            own, best = _ngrams(answer, order), Counter[tuple[str, ...]]()
            for gold in golds:
                best |= _ngrams(gold, order)
            matches[order - 1] += sum((own & best).values())
            possible[order - 1] += max(len(answer) - order + 1, 0)
    added = int(smooth)
    precisions = [
        (match + added) / (most + added) if most + added else 0.0 for match, most in zip(matches, possible, strict=True)
    ]
    mean = math.exp(math.fsum(map(math.log, precisions)) / max_order) if min(precisions) > 0 else 0.0
    ratio = answered / wanted if wanted else math.inf
    penalty = 1.0 if ratio > 1 else (math.exp(1 - 1 / ratio) if ratio else 0.0)
    return {
        "bleu": mean * penalty, "precisions": precisions, "brevity_penalty": penalty, "length_ratio": ratio,
        "translation_length": answered, "reference_length": wanted,
    }  # fmt: skip


def _tokens_13a() -> Callable[[str], Sequence[str]]:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    tokenize = Tokenizer13a()
    return lambda text: tokenize(text).split()


def _ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[at : at + order]) for at in range(len(tokens) - order + 1))


def _rouge(
    predictions: Sequence[str], references: Sequence[str | Sequence[str]],
    rouge_types: Sequence[str] = ("rouge1", "rouge2", "rougeL", "rougeLsum"), use_aggregator: bool = True,
    use_stemmer: bool = False, tokenizer: Callable[[str], Sequence[str]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """F1 of ROUGE (Lin 2004) by ``rouge_score``: its middle estimate over all pairs, or with ``use_aggregator=False``
    the value of each pair. Of several references the best one counts.

    The middle estimate is the median of 1000 resampled means, which are drawn here with a fixed seed.
    """
    split = None if tokenizer is None else _Split(tokenizer)
    scorer = _rouge_score().RougeScorer(list(rouge_types), use_stemmer=use_stemmer, tokenizer=split)
    made: dict[str, list[float]] = {name: [] for name in rouge_types}
    for prediction, stated in zip(predictions, references, strict=True):
        found = scorer.score(stated, prediction) if isinstance(stated, str) else scorer.score_multi(stated, prediction)
        for name in rouge_types:
            made[name].append(float(found[name].fmeasure))
    return {name: _middle(values) for name, values in made.items()} if use_aggregator else dict(made)


def _bert_score() -> Any:
    try:
        import bert_score
    except ImportError as error:
        raise MissingOptionalDependencyError("bert_score: pip install bert-score") from error
    return bert_score


def _bertscore(
    predictions: Sequence[str], references: Sequence[str | Sequence[str]], lang: str | None = None,
    model_type: str | None = None, num_layers: int | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """Precision, recall and F1 of each pair by embeddings (Zhang et al. 2020), of the package ``bert_score``.

    The package gets its model from the hub. ``options`` are its own.
    """
    if model_type is None and lang is None:
        raise ValueError("metric 'bertscore': give lang or model_type")
    golds = [[gold] if isinstance(gold, str) else list(gold) for gold in references]
    scores, code = _bert_score().score(
        list(predictions), golds, lang=lang, model_type=model_type, num_layers=num_layers, return_hash=True, **options
    )
    precision, recall, f1 = (part.tolist() for part in scores)
    return {"precision": precision, "recall": recall, "f1": f1, "hashcode": code}


class _Split:
    """A tokenizer function in the form that ``rouge_score`` takes."""

    def __init__(self, function: Callable[[str], Sequence[str]]) -> None:
        self.tokenize = function


def _rouge_score() -> Any:
    try:
        from rouge_score import rouge_scorer
    except ImportError as error:
        raise MissingOptionalDependencyError("rouge_score: pip install 'lmms_eval[lm-eval]'") from error
    return rouge_scorer


def _middle(values: Sequence[float], draws: int = 1000) -> float:
    import numpy as np

    if len(set(values)) == 1:
        return values[0]
    numbers = np.random.default_rng(0).integers(len(values), size=(draws, len(values)))
    return float(np.median(np.asarray(values)[numbers].mean(axis=1)))


_PUNCTUATION = frozenset(string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(s: str) -> str:
    """Lower case without punctuation, articles and repeated white space (SQuAD)."""
    text = "".join(character for character in s.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def get_tokens(s: str) -> list[str]:
    """Return the words of a normalised answer."""
    return normalize_answer(s).split() if s else []


def compute_exact(a_gold: str, a_pred: str) -> int:
    """1 if both answers are equal after normalisation."""
    return int(normalize_answer(a_gold) == normalize_answer(a_pred))


def compute_f1(a_gold: str, a_pred: str) -> float:
    """F1 of the words of two answers; of two empty ones 1."""
    gold, predicted = get_tokens(a_gold), get_tokens(a_pred)
    common = sum((Counter(gold) & Counter(predicted)).values())
    if not gold or not predicted:
        return int(gold == predicted)
    if not common:
        return 0
    precision, recall = common / len(predicted), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def _squad_v2(
    predictions: Sequence[Mapping[str, Any]], references: Sequence[Mapping[str, Any]], no_answer_threshold: float = 1.0
) -> dict[str, Any]:
    """Exact match and F1 in percent of SQuAD 2.0 (Rajpurkar et al. 2018), as its evaluation script has them.

    Args:
        predictions: ``id``, ``prediction_text`` and ``no_answer_probability`` of each question.
        references: ``id`` and ``answers`` with their ``text`` of each question; without texts it has no answer.
        no_answer_threshold: a probability above it counts as the reply that the question has no answer.

    Raises:
        ValueError: a question has no prediction.
    """
    texts = {one["id"]: str(one["prediction_text"]) for one in predictions}
    chances = {one["id"]: float(one["no_answer_probability"]) for one in predictions}
    answers = {one["id"]: list(one["answers"]["text"]) for one in references}
    absent = next((name for name in answers if name not in texts), None)
    if absent is not None:
        raise ValueError(f"metric 'squad_v2': no prediction has the id {absent!r} of a reference")
    made: dict[str, Any] = {}
    tables = {"exact": _best_of(compute_exact, texts, answers), "f1": _best_of(compute_f1, texts, answers)}
    parts = {"": list(answers), "HasAns_": [one for one in answers if answers[one]],
             "NoAns_": [one for one in answers if not answers[one]]}  # fmt: skip
    for prefix, names in parts.items():
        for key, values in tables.items() if names else ():
            kept = [float(not answers[one]) if chances[one] > no_answer_threshold else values[one] for one in names]
            made[f"{prefix}{key}"] = 100.0 * math.fsum(kept) / len(names)
        if names:
            made[f"{prefix}total"] = len(names)
    for key, values in tables.items():
        best, threshold = _best_threshold(values, texts, answers, chances)
        made |= {f"best_{key}": best, f"best_{key}_thresh": threshold}
    return made


def _best_of(
    score: Callable[[str, str], float], texts: Mapping[Any, str], answers: Mapping[Any, Sequence[str]]
) -> dict[Any, float]:
    """Return the best value over the reference answers of each question; one without answers has the answer ""."""
    return {
        name: max(score(gold, texts[name]) for gold in [gold for gold in golds if normalize_answer(gold)] or [""])
        for name, golds in answers.items()
    }


def _best_threshold(
    values: Mapping[Any, float], texts: Mapping[Any, str], answers: Mapping[Any, Sequence[str]],
    chances: Mapping[Any, float],
) -> tuple[float, float]:  # fmt: skip
    """Return the best mean in percent over all thresholds of the probability, and the threshold.

    Below the lowest threshold no question is answered, which is right for those without an answer.
    """
    now = best = float(sum(not golds for golds in answers.values()))
    threshold = 0.0
    for name in sorted(answers, key=chances.__getitem__):
        now += values[name] if answers[name] else (-1.0 if texts[name] else 0.0)
        if now > best:
            best, threshold = now, chances[name]
    return 100.0 * best / len(values), threshold


def _sklearn() -> Any:
    try:
        from sklearn import metrics
    except ImportError as error:
        raise MissingOptionalDependencyError("sklearn: pip install 'lmms_eval[lm-eval]'") from error
    return metrics


def _accuracy(
    predictions: Sequence[Any], references: Sequence[Any], normalize: bool = True, sample_weight: Any = None
) -> dict[str, float]:
    value = _sklearn().accuracy_score(references, predictions, normalize=normalize, sample_weight=sample_weight)
    return {"accuracy": float(value)}


def _f1(
    predictions: Sequence[Any], references: Sequence[Any], labels: Any = None, pos_label: Any = 1,
    average: str | None = "binary", sample_weight: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """F1 of labels; with ``average=None`` an array with one value a label."""
    value = _sklearn().f1_score(
        references, predictions, labels=labels, pos_label=pos_label, average=average, sample_weight=sample_weight
    )
    return {"f1": value if average is None else float(value)}


def _exact_match(predictions: Sequence[Any], references: Sequence[Any], **options: Any) -> dict[str, Any]:
    return dict(exact_match(references, predictions, **options))


def _wer(predictions: Sequence[str], references: Sequence[str], concatenate_texts: bool = False) -> float:
    """Word error rate of all texts (``word_error_rate``); ``concatenate_texts`` scores them joined by blanks."""
    if concatenate_texts:
        return word_error_rate([" ".join(references)], [" ".join(predictions)])
    return word_error_rate(references, predictions)


_METRICS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "accuracy": _accuracy, "bertscore": _bertscore, "bleu": _bleu, "exact_match": _exact_match, "f1": _f1,
        "rouge": _rouge, "squad_v2": _squad_v2, "wer": _wer,
    }
)  # fmt: skip

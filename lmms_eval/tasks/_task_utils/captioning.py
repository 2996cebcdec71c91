"""Captions against reference captions: the COCO toolkit's metrics over all documents of a task.

Each aggregation takes rows with the keys ``pred`` (a text) and ``answer`` (texts), and gives no number where a part
that its metric needs is absent. Texts are tokenised once for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate, NotEvaluated, Withheld
from lmms_eval.errors import ItemError
from lmms_eval.metrics import captions
from lmms_eval.metrics.captions import Caption
from lmms_eval.tasks._task_utils.estimates import mean

Rows = Sequence[Mapping[str, Any]]
Result = Estimate | Withheld
_MAX_ORDER = 4


def scored_alike(names: Sequence[str], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row under each metric's name.

    Raises:
        ItemError: it has no reference caption.
    """
    if not isinstance(row["answer"], list | tuple) or not any(str(text).strip() for text in row["answer"]):
        raise ItemError(f"column 'answer' holds {row['answer']!r:.200}: captions are scored against at least one text")
    return dict.fromkeys(names, row)


def _aggregation(score: Callable[[tuple[Caption, ...]], Estimate]) -> Callable[[Rows], Result]:
    """Make the aggregation of a metric of tokenised captions."""

    @functools.wraps(score)
    def aggregate(results: Rows) -> Result:
        if not results:
            return Estimate(None)
        try:
            texts = [str(text) for row in results for text in (row["pred"], *row["answer"])]
            tokens = iter(captions.caption_tokens(texts))
            return score(tuple(Caption(next(tokens), tuple(next(tokens) for _ in row["answer"])) for row in results))
        except NotEvaluated as absent:
            return Withheld(None, absent.reason)

    return aggregate


def _bleu(order: int) -> Callable[[Rows], Result]:
    return _aggregation(lambda scored: _bleu_scores(scored)[order - 1])


@functools.lru_cache(maxsize=1)
def _bleu_scores(scored: tuple[Caption, ...]) -> tuple[Estimate, ...]:
    """All four orders, whose counts are the same."""
    counts = [captions.bleu_counts(one.prediction, one.references, _MAX_ORDER) for one in scored]
    errors = captions.bleu_errors(counts)
    values = captions.corpus_bleus(counts, _MAX_ORDER)
    return tuple(Estimate(value, error) for value, error in zip(values, errors, strict=True))


def _meteor(scored: tuple[Caption, ...]) -> Estimate:
    value, scores = captions.meteor(scored)
    return Estimate(value, mean(scores).stderr)


bleu_1, bleu_2, bleu_3, bleu_4 = map(_bleu, range(1, _MAX_ORDER + 1))
"""Corpus BLEU of the orders 1 to 4, 0 to 1."""
cider = _aggregation(lambda scored: mean(captions.cider_scores(scored)))
"""Mean CIDEr-D, 0 to 10."""
rouge_l = _aggregation(lambda scored: mean([captions.rouge_l(one) for one in scored]))
"""Mean ROUGE-L, 0 to 1."""
meteor = _aggregation(_meteor)
"""METEOR of all captions, 0 to 1; its error is that of the captions' mean."""

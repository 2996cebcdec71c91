"""Scores of captions by the COCO caption toolkit (``pycocoevalcap``): its tokenizer, corpus BLEU and CIDEr-D.

X. Chen et al., "Microsoft COCO captions: data collection and evaluation server", arXiv 1504.00325, 2015;
R. Vedantam, C. L. Zitnick and D. Parikh, "CIDEr: consensus-based image description evaluation", CVPR 2015. The
toolkit's ``Cider`` is the paper's variant D (clipped, with a penalty on length), and so are the numbers that papers
print as CIDEr.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.processes import Child, ChildError

JAVA = "the tokenizer of the COCO caption toolkit needs Java: install a Java runtime (8 or later)"
_LEAST_SECONDS, _BYTES_PER_SECOND = 60, 10_000
"""The time limit of the tokenizer. It starts in half a second and then reads at least 100,000 bytes a second."""
_METEOR_BYTES_PER_SECOND = 2_000
_METEOR_LINES = 100
"""Lines that are sent at once. Their replies must fit into the pipe."""
_TINY, _SMALL = 1e-15, 1e-9
"""The toolkit's constants against division by zero."""
_BETA = 1.2
_MOST_KNOWN = 100_000
_known: dict[str, tuple[str, ...]] = {}
"""Tokens by text; redrawing a value for its error needs the same ones again."""


class Caption(Struct, frozen=True):
    """A predicted caption and its references, as tokens."""

    prediction: Sequence[str]
    references: Sequence[Sequence[str]]


def require_java() -> str:
    """Return the path of the Java runtime. Raises ``NotEvaluated`` if Java is not installed."""
    found = shutil.which("java")
    if found is None:
        raise NotEvaluated(JAVA)
    return found


def caption_tokens(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Tokenise texts as the toolkit does: Stanford's PTB tokenizer, lower case, without punctuation.

    Raises ``NotEvaluated`` if Java is missing or the tokenizer fails.
    """
    new = dict.fromkeys(text for text in texts if text not in _known)
    if len(_known) + len(new) > _MOST_KNOWN:
        _known.clear()
        new = dict.fromkeys(texts)
    if new:
        _known.update(zip(new, _tokenised(list(new)), strict=True))
    return [_known[text] for text in texts]


def _tokenised(texts: list[str]) -> list[tuple[str, ...]]:
    """Tokenise by the toolkit's program, not by its Python wrapper.

    The wrapper writes into its own package, and returns empty captions if the program failed.
    """
    from pycocoevalcap.tokenizer import ptbtokenizer as toolkit

    jar = Path(toolkit.__file__).with_name(toolkit.STANFORD_CORENLP_3_4_1_JAR)
    command = [require_java(), "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", str(jar)]
    command += ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase", "-charset", "UTF-8"]
    lines = "\n".join(" ".join(text.split()) for text in texts).encode("utf-8", "ignore")
    seconds = _LEAST_SECONDS + len(lines) // _BYTES_PER_SECOND
    try:
        done = subprocess.run(command, input=lines, capture_output=True, timeout=seconds, check=True)
        found = done.stdout.decode().split("\n")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        raise NotEvaluated(f"the tokenizer of the COCO caption toolkit failed ({error})") from error
    if len(found) != len(texts):
        raise NotEvaluated(f"the tokenizer of the COCO caption toolkit gave {len(found)} lines for {len(texts)} texts")
    left_out = frozenset(toolkit.PUNCTUATIONS)
    kept = (" ".join(word for word in line.split(" ") if word not in left_out) for line in found)
    return [tuple(line.split()) for line in kept]


def bleu_counts(prediction: Sequence[str], references: Sequence[Sequence[str]], n: int) -> Mapping[str, Any]:
    """Return the counts of one item for corpus BLEU of the orders 1 to ``n``, as JSON; needs at least one reference."""
    from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test

    counts: Mapping[str, Any] = cook_test(" ".join(prediction), cook_refs(map(" ".join, references), n=n), n=n)
    return counts


def corpus_bleu(items: Sequence[Mapping[str, Any]], n: int) -> float:
    """BLEU-n of a corpus, 0 to 1, from the ``bleu_counts`` of at least one item, by the nearest reference's length.

    Because of the toolkit's small constants a perfect corpus falls short of 1 by 1e-9, and one without a match has
    about 5e-16.
    """
    return corpus_bleus(items, n)[n - 1]


def corpus_bleus(items: Sequence[Mapping[str, Any]], n: int) -> list[float]:
    """Return BLEU of the orders 1 to ``n`` of a corpus; see ``corpus_bleu``."""
    from pycocoevalcap.bleu.bleu_scorer import BleuScorer

    scorer = BleuScorer(n=n)
    scorer.ctest = list(items)
    return [float(score) for score in scorer.compute_score(option="closest")[0]]


def bleu_errors(items: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Return the standard errors of ``corpus_bleus``, by leaving each item out in turn (jackknife).

    Quenouille 1956, "Notes on bias in estimation"; ``None`` for fewer than two items.
    """
    import numpy as np

    orders, n = range(len(items[0]["correct"])), len(items)
    if n < 2:
        return [None for _ in orders]
    matches, guesses = (np.array([item[key] for item in items], float) for key in ("correct", "guess"))
    lengths = np.array([item["testlen"] for item in items], float)
    nearest = np.array([min(item["reflen"], key=lambda one: (abs(one - item["testlen"]), one)) for item in items])
    precisions = (matches.sum(0) - matches + _TINY) / (guesses.sum(0) - guesses + _SMALL)
    shortness = (nearest.sum() - nearest) / (lengths.sum() - lengths + _SMALL)
    penalty = np.minimum(0.0, 1.0 - shortness)
    without = [np.exp(np.log(precisions[:, : order + 1]).mean(1) + penalty) for order in orders]
    return [float(np.sqrt((n - 1) / n * ((one - one.mean()) ** 2).sum())) for one in without]


def cider(captions: Sequence[Caption]) -> float:
    """Mean CIDEr-D of a corpus, 0 to 10; document frequencies are those of its references.

    N-grams that occur in every item's references have no weight, so a corpus of one item scores 0.
    """
    return _cider(captions)[0]


def cider_scores(captions: Sequence[Caption]) -> list[float]:
    """Return CIDEr-D of each item of a corpus; see ``cider``."""
    return [float(score) for score in _cider(captions)[1]]


def _cider(captions: Sequence[Caption]) -> tuple[float, Sequence[float]]:
    from pycocoevalcap.cider.cider import Cider

    if not any(reference for caption in captions for reference in caption.references):
        return 0.0, [0.0] * len(captions)  # the toolkit fails without any n-gram
    predicted = {at: [" ".join(caption.prediction)] for at, caption in enumerate(captions)}
    references = {at: [" ".join(one) for one in caption.references] for at, caption in enumerate(captions)}
    mean, scores = Cider().compute_score(references, predicted)
    return float(mean), scores


def rouge_l(caption: Caption) -> float:
    """Return ROUGE-L of an item, 0 to 1: the toolkit's, with the best precision and the best recall of all references.

    Lin 2004, "ROUGE: a package for automatic evaluation of summaries", with beta = 1.2.
    """
    from rapidfuzz.distance import LCSseq

    predicted, references = caption.prediction or ("",), [one or ("",) for one in caption.references]
    common = [int(LCSseq.similarity(predicted, one)) for one in references]
    precision = max(common) / len(predicted)
    recall = max(found / len(one) for found, one in zip(common, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def meteor(captions: Sequence[Caption]) -> tuple[float, list[float]]:
    """Return METEOR 1.5 of a corpus and of its items, 0 to 1, by the toolkit's program.

    Denkowski and Lavie 2014, "Meteor Universal". Raises ``NotEvaluated`` if Java is missing or the program fails.
    """
    lines = []
    for caption in captions:
        texts = [" ".join(words).replace("|||", "") for words in (*caption.references, caption.prediction)]
        lines.append(" ||| ".join(["SCORE", *texts]))
    try:
        *scores, value = map(float, _asked_meteor(lines))
    except (OSError, ValueError, ChildError) as error:
        raise NotEvaluated(f"METEOR of the COCO caption toolkit failed ({error})") from error
    return value, scores


def _asked_meteor(lines: Sequence[str]) -> list[str]:
    """Request the counts of each item, then the scores of all counts, from one process: it is slow to start."""
    from pycocoevalcap.meteor import meteor as toolkit

    jar = Path(toolkit.__file__).with_name(toolkit.METEOR_JAR)
    command = [require_java(), "-Xmx2G", "-jar", str(jar), "-", "-", "-stdio", "-l", "en", "-norm"]
    data = [line.encode("utf-8", "ignore") for line in lines]
    deadline = time.monotonic() + _LEAST_SECONDS + sum(map(len, data)) // _METEOR_BYTES_PER_SECOND
    child = Child("METEOR", os.environ, command=command, errors="discarded")
    try:
        counts = []
        for start in range(0, len(data), _METEOR_LINES):
            part = data[start : start + _METEOR_LINES]
            child.send(b"\n".join(part))
            counts += [child.receive(deadline - time.monotonic()).strip() for _ in part]
        child.send(b" ||| ".join([b"EVAL", *counts]))
        return [child.receive(deadline - time.monotonic()).decode().strip() for _ in range(len(data) + 1)]
    finally:
        child.kill()
        child.close()

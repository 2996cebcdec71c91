"""Scores of captions by the COCO caption toolkit (``pycocoevalcap``): its tokenizer, corpus BLEU and CIDEr-D.

X. Chen et al., "Microsoft COCO captions: data collection and evaluation server", arXiv 1504.00325, 2015;
R. Vedantam, C. L. Zitnick and D. Parikh, "CIDEr: consensus-based image description evaluation", CVPR 2015. The
toolkit's ``Cider`` is the paper's variant D (clipped, with a penalty on length), and so are the numbers that papers
print as CIDEr.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import NotEvaluated

JAVA = "the tokenizer of the COCO caption toolkit needs Java: install a Java runtime (8 or later)"
_LEAST_SECONDS, _BYTES_PER_SECOND = 60, 10_000
"""Given to the tokenizer, whose start takes half a second; then it reads 100,000 bytes a second and more."""
_MOST_KNOWN = 100_000
_known: dict[str, tuple[str, ...]] = {}
"""Tokens of texts: a value that is drawn anew for its error asks for the same ones."""


@dataclass(frozen=True, slots=True)
class Caption:
    """A predicted caption and its references, as tokens."""

    prediction: Sequence[str]
    references: Sequence[Sequence[str]]


def require_java() -> str:
    """The path of the Java runtime.

    Raises:
        NotEvaluated: there is none.
    """
    found = shutil.which("java")
    if found is None:
        raise NotEvaluated(JAVA)
    return found


def caption_tokens(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Tokens of each text as the toolkit makes them: Stanford's PTB tokenizer, lower case, punctuation left out.

    Raises:
        NotEvaluated: Java is missing, or the tokenizer failed.
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

    The wrapper writes into its own package, and takes a program that failed for empty captions.
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
    """Counts of one item for corpus BLEU of the orders 1 to ``n``, as JSON; there is at least one reference."""
    from pycocoevalcap.bleu.bleu_scorer import cook_refs, cook_test

    counts: Mapping[str, Any] = cook_test(" ".join(prediction), cook_refs(map(" ".join, references), n=n), n=n)
    return counts


def corpus_bleu(items: Sequence[Mapping[str, Any]], n: int) -> float:
    """BLEU-n of a corpus, 0 to 1, of the ``bleu_counts`` of at least one item; the nearest reference's length counts.

    For the toolkit's small constants a perfect corpus falls short of 1 by 1e-9, and one without a match is 5e-16 or so.
    """
    from pycocoevalcap.bleu.bleu_scorer import BleuScorer

    scorer = BleuScorer(n=n)
    scorer.ctest = list(items)
    return float(scorer.compute_score(option="closest")[0][n - 1])


def cider(captions: Sequence[Caption]) -> float:
    """Mean CIDEr-D of a corpus, 0 to 10; document frequencies are those of its references.

    N-grams that are in every item's references have no weight, hence a corpus of one item scores 0.
    """
    from pycocoevalcap.cider.cider import Cider

    if not any(reference for caption in captions for reference in caption.references):
        return 0.0  # where the toolkit looks for the most frequent n-gram of none
    predicted = {at: [" ".join(caption.prediction)] for at, caption in enumerate(captions)}
    references = {at: [" ".join(one) for one in caption.references] for at, caption in enumerate(captions)}
    return float(Cider().compute_score(references, predicted)[0])

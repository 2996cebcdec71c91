"""ROUGE-L: on distinct words, as the ``rouge`` package 1.0.1 has it, and on word sequences.

Both work without recursion and without a limit of length. Rows of the table of longest common subsequences are bit
vectors over the words of the gold text (H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004): bit ``i``
of row ``j`` is 0 where the length grows from ``i`` to ``i + 1`` gold words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EPSILON = 1e-8


def split_sentences(text: str) -> list[list[str]]:
    """Words of each distinct sentence. A piece of blanks between two full stops is a sentence of one empty word."""
    return [" ".join(piece.split()).split(" ") for piece in dict.fromkeys(text.split(".")) if piece]


def distinct_word_rouge(prediction: str, gold: str) -> float | None:
    """The package's F of two normalised texts; ``None`` if one of them has no sentence (the package raises).

    The words of the common subsequences of all pairs of sentences form one set, which is related to the sets of
    words of either text. A perfect match is 0.999999995.
    """
    predicted, wanted = split_sentences(prediction), split_sentences(gold)
    if not predicted or not wanted:
        return None
    gold_words = {word for sentence in wanted for word in sentence}
    predicted_words = {word for sentence in predicted for word in sentence}
    shared = gold_words & predicted_words
    relevant = {tuple(word for word in sentence if word in shared) for sentence in predicted} - {()}
    union: set[str] = set()
    for sentence in wanted:
        for other in relevant:
            if len(union) == len(shared):
                break  # no more words can come
            union |= common_words(sentence, other)
    recall, precision = len(union) / len(gold_words), len(union) / len(predicted_words)
    return 2.0 * ((precision * recall) / (precision + recall + EPSILON))


def sequence_rouge(prediction: str, gold: str) -> float:
    """F1 of the longest common subsequence of words (C.-Y. Lin, "ROUGE", 2004); 0 if nothing is common."""
    predicted, wanted = prediction.split(), gold.split()
    masks = _masks(wanted)
    row = full = (1 << len(wanted)) - 1
    for word in predicted:
        if word in masks:
            row = _next(row, masks[word]) & full
    length = len(wanted) - row.bit_count()
    return 2.0 * length / (len(predicted) + len(wanted)) if length else 0.0


def common_words(gold: Sequence[str], prediction: Sequence[str]) -> set[str]:
    """The words of the common subsequence that the package's back-trace finds.

    From the ends of both: equal words are taken; otherwise a step back in ``gold`` if that leaves strictly more in
    common than a step back in ``prediction``, else a step back in ``prediction``. Words of ``prediction`` that are
    not in ``gold`` change nothing and can be left out.
    """
    masks = _masks(gold)
    full = (1 << len(gold)) - 1
    rows = [full]
    for word in prediction:
        rows.append(_next(rows[-1], masks.get(word, 0)) & full)
    found: set[str] = set()
    i, j = len(gold), len(prediction)
    while i and j:
        if gold[i - 1] == prediction[j - 1]:
            found.add(gold[i - 1])
            i, j = i - 1, j - 1
        elif _length(rows[j], i - 1) > _length(rows[j - 1], i):
            i -= 1
        else:
            j -= 1
    return found


def _masks(words: Sequence[str]) -> Mapping[str, int]:
    """The places of each word, as bits."""
    masks: dict[str, int] = {}
    for index, word in enumerate(words):
        masks[word] = masks.get(word, 0) | 1 << index
    return masks


def _next(row: int, mask: int) -> int:
    matched = row & mask
    return (row + matched) | (row - matched)


def _length(row: int, n_words: int) -> int:
    """Length of the longest common subsequence with the first ``n_words`` gold words."""
    return n_words - (row & ((1 << n_words) - 1)).bit_count()

"""The measures of answers that are texts or numbers.

Words of BLEU-1 are NLTK's if its data are found, else those between spaces (``text_math.word_tokenizer``); the
context's option ``word_tokenizer`` overrides this. Answers that are too long to be meant count as unreadable: above
100,000 characters, 20,000 for BLEU-1 and programs, 5,000 for BLEU-4 and CIDEr.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.metrics.captions import Caption, bleu_counts, caption_tokens, cider, corpus_bleu, require_java
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import text_math
from lmms_eval.tasks.general_bench.measures.choices import choice_match, first_answer_match, options_of
from lmms_eval.tasks.general_bench.measures.code_bleu import code_bleu, code_fault
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean

PERCENT = 100.0
MAX_CHARS = 100_000
MAX_SENTENCES = 20_000
"""Most characters of a text that NLTK splits into words: a sentence takes 40 µs and may have two characters."""
MAX_CAPTION = 5_000
"""Most characters of a caption, because captions stay in the journal."""
MAX_NUMBER = 1e100
"""Largest number of a prediction. Squares of larger ones have no sum."""
VECTORS = "the reference's recorded values (text_metrics, nlp_processor)"
OWN_RULES = "hand cases: the reference has no code for it"
WITH_JAVA = "Java, for the tokenizer of the caption toolkit"
BY_TOOLKIT = "computed by the COCO caption toolkit, pycocoevalcap 1.2"
CANDIDATES = "candidates"
"""Key of ``Context.options``: the classes that a task's questions choose from (``prompts.forms``), if any."""
LANGUAGES: Mapping[str, str] = MappingProxyType({"python": "python", "java": "java"})
"""Languages with their own parser. Any other is parsed as Python, as in the benchmark."""
_JAVA_TASKS = frozenset({"Code Repair"})
"""Tasks in Java with items that name no language."""

TextScore = Callable[[str, list[str]], float]


def answer_text(prediction: Any, item: Item, limit: int = MAX_CHARS) -> str:
    """Return the text of a prediction. A number counts as its digits.

    Raises ``UnreadableAnswer`` if it is neither, or has more than ``limit`` characters.
    """
    if isinstance(prediction, bool) or not isinstance(prediction, str | int | float):
        raise UnreadableAnswer(f"{item.where}: the prediction {prediction!r:.80} is no text")
    text = prediction if isinstance(prediction, str) else repr(prediction)
    if len(text) > limit:
        raise UnreadableAnswer(f"{item.where}: the prediction has {len(text)} characters; at most {limit} are read")
    return text


def references_of(item: Item) -> list[str]:
    """Return the texts of an item's reference, at least one. Numbers count as their digits.

    Raises ``DataError`` if it is missing, or is not a text.
    """
    given = item.reference if isinstance(item.reference, list) else [item.reference]
    if not given or any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in given):
        raise DataError(f"{item.where}: the reference {item.reference!r:.80} is no text and no list of texts")
    return [one if isinstance(one, str) else repr(one) for one in given]


def _averaged(name: str, score: TextScore, checked: str, needs: str = "") -> Measure:
    """Return a measure that is the mean of scores from 0 to 1 of texts and their references."""

    def state(prediction: Any, item: Item, _: Context) -> State:
        return PERCENT * score(answer_text(prediction, item), references_of(item))

    return Measure(name, "text", state, mean, is_mean=True, needs=needs, checked=checked)


def _not_blank(references: list[str]) -> list[str]:
    if not all(reference.strip() for reference in references):
        raise DataError("a reference is empty, and every text contains it")
    return references


def _rouge(kind: text_math.RougeKind) -> TextScore:
    return lambda text, references: max(text_math.rouge(text, reference, kind) for reference in references)


def _choice_state(prediction: Any, item: Item, context: Context) -> State:
    options, classes = options_of(item.raw, item.prompt), context.options.get(CANDIDATES, ())
    return PERCENT * choice_match(answer_text(prediction, item), references_of(item), options, classes)


def _bleu1_state(prediction: Any, item: Item, context: Context) -> State:
    tokenizer = text_math.word_tokenizer()
    if context.options.get("word_tokenizer") is not None:
        tokenizer = context.choice("word_tokenizer", "treebank", "white-space")
    words = text_math.word_tokens(answer_text(prediction, item, MAX_SENTENCES), tokenizer)
    scores = [
        text_math.sentence_bleu(words, text_math.word_tokens(reference, tokenizer), 1)
        for reference in references_of(item)
    ]
    return PERCENT * max(scores)


def _macro_value(states: Sequence[State]) -> float:
    hits: dict[str, list[float]] = defaultdict(list)
    for label, hit in states:
        hits[label.strip().casefold()].append(hit)
    return PERCENT * mean([mean(of_class) for of_class in hits.values()])


def _video_state(prediction: Any, item: Item, _: Context) -> State:
    """Return the toolkit's counts for lower-cased words between spaces: the authors do not use its tokenizer."""
    words, *references = (
        text_math.fallback_tokens(text.lower()) for text in (answer_text(prediction, item), *references_of(item))
    )
    return dict(bleu_counts(words, references, 1))


def _micro_state(prediction: Any, item: Item, _: Context) -> State:
    predicted, wanted = _labels(answer_text(prediction, item).split(text_math.SEPARATOR)), _wanted_labels(item)
    common = len(predicted & wanted)
    return [common, len(predicted) - common, len(wanted) - common]


def _wanted_labels(item: Item) -> frozenset[str]:
    return _labels([label for reference in references_of(item) for label in reference.split(text_math.SEPARATOR)])


def _labels(texts: Sequence[str]) -> frozenset[str]:
    """Return the labels without case and outer spaces. Empty labels are dropped if there are others."""
    found = frozenset(text.strip().lower() for text in texts)
    return found - {""} if len(found) > 1 else found


def caption_state(prediction: Any, item: Item, _: Context) -> State:
    """Return a caption and its references unchanged. A program later splits all of them into words at once.

    Raises ``NotEvaluated`` if Java, which that program needs, is missing.
    """
    require_java()
    return [answer_text(prediction, item, MAX_CAPTION), references_of(item)]


def no_caption(item: Item, context: Context) -> State:
    """Return the state of an empty caption."""
    return caption_state("", item, context)


def _captions(states: Sequence[State]) -> list[Caption]:
    tokens = iter(caption_tokens([text for one, references in states for text in (one, *references)]))
    return [Caption(next(tokens), [next(tokens) for _ in references]) for _, references in states]


def cider_value(states: Sequence[State]) -> float:
    """Return CIDEr-D in percent of the states of ``caption_state``."""
    return PERCENT * cider(_captions(states))


def _bleu4_value(states: Sequence[State]) -> float:
    return PERCENT * corpus_bleu([bleu_counts(one.prediction, one.references, 4) for one in _captions(states)], 4)


def _code_state(prediction: Any, item: Item, _: Context) -> State:
    text, language = answer_text(prediction, item), code_language(item)
    if fault := code_fault(text, language):
        raise UnreadableAnswer(f"{item.where}: the program {fault}")
    return [text, references_of(item)[0], language]


def code_language(item: Item) -> str:
    """Return the language of an item's program: the one that it names, Java for repairs, else Python."""
    named = item.raw.get("language")
    if isinstance(named, str):
        return LANGUAGES.get(named.strip().lower(), "python")
    return "java" if item.facts.name in _JAVA_TASKS else "python"


def _code_value(states: Sequence[State]) -> float:
    """Return CodeBLEU of the corpus of each language. Several languages are averaged by numbers of items."""
    corpora: dict[str, list[State]] = defaultdict(list)
    for state in states:
        corpora[state[2]].append(state)
    scores = [
        len(corpus) * code_bleu([text for text, _, _ in corpus], [wanted for _, wanted, _ in corpus], language)
        for language, corpus in sorted(corpora.items())
    ]
    return PERCENT * math.fsum(scores) / len(states)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= MAX_NUMBER else None  # nor NaN


def _difference(prediction: Any, item: Item, _: Context) -> State:
    wanted, found = _number(item.reference), _number(prediction)
    if wanted is None:
        raise DataError(f"{item.where}: the reference {item.reference!r:.80} is no number")
    if found is None:
        raise UnreadableAnswer(f"{item.where}: the prediction {prediction!r:.80} is no number")
    return abs(found - wanted)


_STEMMER = "nltk (extra metrics)"
MEASURES: tuple[Measure, ...] = (
    _averaged("accuracy", text_math.exact_match, VECTORS),
    _averaged(
        "accuracy/exact",
        lambda text, wanted: text_math.exact_match(text.lower(), [one.lower() for one in wanted]),
        VECTORS + ", but for case",
    ),
    _averaged(
        "accuracy/substring",
        lambda text, wanted: max(text_math.audio_contains(text, one.strip().lower()) for one in _not_blank(wanted)),
        VECTORS + ", but for case",
    ),
    _averaged("accuracy/contains", lambda text, wanted: text_math.video_contains(text, _not_blank(wanted)), VECTORS),
    Measure("accuracy/choice", "text", _choice_state, mean, is_mean=True, checked=OWN_RULES),
    Measure(
        "macro_accuracy", "text",
        lambda prediction, item, context: [references_of(item)[0], _choice_state(prediction, item, context) / PERCENT],
        _macro_value, lambda item, _: [references_of(item)[0], 0.0], checked=OWN_RULES,
    ),
    _averaged("exact_match", lambda text, wanted: float(first_answer_match(text, wanted)), OWN_RULES),
    _averaged("f1", text_math.token_f1, VECTORS),
    _averaged("anls", text_math.anls, OWN_RULES),
    _averaged("rouge1", _rouge("rouge1"), VECTORS, _STEMMER),
    _averaged("rouge_l", _rouge("rougeL"), VECTORS, _STEMMER),
    Measure(
        name=text_math.BY_WORDS, form="text", state=_bleu1_state, value=mean, is_mean=True,
        needs="nltk and its data; without them words are split at spaces", checked=VECTORS + "; nltk 3.10",
    ),
    Measure(
        "bleu1/corpus", "text", _video_state, lambda states: PERCENT * corpus_bleu(states, 1),
        lambda item, context: _video_state("", item, context), checked=f"{VECTORS}; {BY_TOOLKIT}",
    ),
    Measure(
        "bleu4", "text", caption_state, _bleu4_value, no_caption, needs=WITH_JAVA, checked=BY_TOOLKIT,
    ),
    Measure(
        name="cider", form="text", state=caption_state, value=cider_value, unanswered=no_caption, is_costly=True,
        needs=WITH_JAVA, checked=f"{BY_TOOLKIT} (CIDEr-D)",
    ),
    Measure(
        "micro_f1", "text", _micro_state,
        lambda states: PERCENT * text_math.micro_f1(states),
        lambda item, _: [0, 0, len(_wanted_labels(item))], checked=VECTORS,
    ),
    Measure(
        name="codebleu", form="text", state=_code_state, value=_code_value, is_costly=True,
        needs="codebleu, tree-sitter and its grammars of Python and Java", checked=VECTORS,
    ),
    Measure("mae", "number", _difference, mean, checked=VECTORS),
    Measure(
        "rmse", "number", _difference, lambda states: math.sqrt(mean([one * one for one in states])), checked=VECTORS,
    ),
)  # fmt: skip

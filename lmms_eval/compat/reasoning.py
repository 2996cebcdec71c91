"""Prompts and scores of the family's reasoning variants: thoughts between tags, then the answer (family names §4)."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from lmms_eval.api.messages import visual_to_content
from lmms_eval.compat.llm_judge import JudgeServer, ServerConfig
from lmms_eval.judges.options import JudgeOptions
from lmms_eval.metrics.answers import ABSENT, Sign, last_place, named_choice
from lmms_eval.metrics.math_answers import default_verify

LETTERS = "ABCDEFGH"
_PHRASES = (
    "the answer is", "answer is", "the correct answer is", "correct answer is", "the answer", "answer",
    "correct answer", "the correct answer", "the best answer is", "best answer is", "the best answer", "best answer",
    "the option is", "option is", "the correct option is", "correct option is", "the choice is", "choice is",
    "the correct choice is", "correct choice is", "i choose", "i select", "i pick", "my answer is", "my choice is",
)  # fmt: skip


def parse_mcq(text: str | None) -> str:
    """Find the letter from A to H that an answer names, or return empty text.

    Signs are tried from the clearest to the weakest: the answer begins with the letter, ends with it, numbers it
    (``2. B``), names it from a phrase on ("the answer"), in parentheses, before a full stop, a colon, a closing
    parenthesis or a blank, before ``-``, ``_`` or ``=``, anywhere. Of several letters with the same sign the first one
    in the text wins. Case matters.
    """
    return named_choice(text, LETTERS, _SIGNS, min)


def relax_exact_match(predict: str, truth: str, relax_portion: float = 0.9) -> float:
    """Compare two answers: 1.0 or 0.0.

    If ``parse_mcq`` finds a letter in a truth, it compares letters alone. Any other truth matches an equal text, and
    one that is a part of it or contains it, if the shorter has ``relax_portion`` of the longer one's length.
    """
    if letter := parse_mcq(truth):
        return float(parse_mcq(predict) == letter)
    if predict in truth and len(predict) >= relax_portion * len(truth):
        return 1.0
    if truth in predict and len(truth) >= relax_portion * len(predict):
        return 1.0
    return float(predict.strip() == truth.strip())


def _from_phrase(text: str, letter: str) -> int:
    lowered = text.lower()
    begins = (lowered.find(phrase) for phrase in _PHRASES)
    places = [place for begin in begins if begin != ABSENT and (place := text.find(letter, begin)) != ABSENT]
    return min(places, default=ABSENT)


_SIGNS = (
    (Sign("letter at the start", lambda text, letter: 0 if text.strip().startswith(letter) else ABSENT),),
    (Sign("letter at the end", lambda text, letter: 0 if text.strip().endswith(letter) else ABSENT),),
    (Sign("letter behind its number", lambda text, letter: text.rfind(f"{LETTERS.index(letter) + 1}. {letter}")),),
    (Sign("letter from a phrase on", _from_phrase),),
    *((last_place(form),) for form in ("({})", "{}.", "{}:", "{})", "{} ")),
    (last_place("{}-"), last_place("{}_"), last_place("{}=")),
    (last_place("{}"),),
)

SYSTEM_PROMPT = (
    "You are a helpful assistant. When user asks a question, your response must include two parts: first, reasoning "
    "process enclosed in <analysis>...</analysis> tags, then final answer enclosed in <answer>...</answer> tags."
    "Please provide a clear, concise response within <answer> </answer> tags that directly addresses to question."
)
FORMULA_SIGNS = frozenset("=+-*/()[]\\")
LONG_TEXT = 50
"""Least number of characters of a text with a formula sign and an answer that counts as reasoning without tags."""
LOOSE_FORMAT = 0.8
ACCURACY_WEIGHT, FORMAT_WEIGHT = 0.9, 0.1
JUDGED_WHOLE = 500
"""Number of characters below which the judge also sees the whole of a solution without the format."""
_LAST_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\Z")

Doc = Mapping[str, Any]


def extract_boxed_answer(text: str) -> str:
    r"""Return the content of the last ``\boxed{…}`` whose braces balance, or empty text."""
    opened: list[int] = []
    last = (-1, 0)
    for at, character in enumerate(text):
        if character == "{":
            opened.append(at)
        elif character == "}" and opened:
            begin = opened.pop()
            if text.endswith("\\boxed", 0, begin):
                last = max(last, (begin, at))
    begin, end = last
    return text[begin + 1 : end]


def extract_anwser_tag(text: str) -> str:
    """Return the first ``<answer>…</answer>`` as it is, else the boxed answer, else the number that ends a line.

    If there are several such lines, the last one counts. Signs and thousands separators are not read. The name is the
    family's spelling.
    """
    _, _, tagged = text.partition("<answer>")
    answer, closing, _ = tagged.partition("</answer>")
    if closing:
        return answer
    if boxed := extract_boxed_answer(text):
        return boxed
    for line in reversed(text.split("\n")):
        if found := _LAST_NUMBER.search(line.rstrip().removesuffix(".").rstrip()):
            return found[0]
    return ""


def format_reward(text: str) -> float:
    """Score the form: 1.0 for thoughts and answer between tags or a boxed answer, 0.8 for a formula, else 0.0."""
    if any(_is_tagged(text, tag) for tag in ("think", "analysis")) or extract_boxed_answer(text):
        return 1.0
    stripped = text.strip()
    reasons = len(stripped) > LONG_TEXT and not FORMULA_SIGNS.isdisjoint(stripped)
    return LOOSE_FORMAT if reasons and extract_anwser_tag(text) else 0.0


def _is_tagged(text: str, tag: str) -> bool:
    """Match the whole text with ``<TAG>…</TAG>…<answer>…</answer>``, in linear time."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    thought_end = text.find(closing, len(opening))
    if not (text.startswith(opening) and text.endswith("</answer>")) or thought_end < 0:
        return False
    answer = text.find("<answer>", thought_end + len(closing))
    return 0 <= answer <= len(text) - len("<answer></answer>")


def simple_parse(text: str) -> str:
    """Drop one final full stop, then trim."""
    return text.removesuffix(".").strip()


def acc_reward(
    predict: str,
    truth: str,
    extra_info: Mapping[str, Any] | None = None,
    format_reward_score: float = 0.0,
    solution_str: str | None = None,
) -> float:
    """Score an answer by text, else as mathematics, else by a judge if ``USE_LLM_JUDGE`` is ``True``.

    The judge sees the ``question`` of ``extra_info``. If ``format_reward_score`` is 0, it is also asked about a short
    ``solution_str``, the whole reply of the model. Raises ``NotEvaluated`` if the score needs the package math-verify
    or a judge, which is absent.
    """
    predict, truth = simple_parse(predict), simple_parse(truth)
    score = relax_exact_match(predict, truth) or float(default_verify(truth, predict))
    if score or os.environ.get("USE_LLM_JUDGE") != "True":
        return score
    question = str((extra_info or {}).get("question", ""))
    score = _judged(question, predict, truth)
    if not score and format_reward_score == 0 and solution_str is not None and len(solution_str) < JUDGED_WHOLE:
        score = _judged(question, solution_str, truth)
    return score


def _judged(question: str, predict: str, truth: str) -> float:
    environ = os.environ
    server = _judge(
        environ.get("JUDGE_MODEL_NAME") or "gpt-4o-mini",
        environ.get("JUDGE_BASE_URL") or "https://api.openai.com/v1",
        environ.get("JUDGE_API_KEY"),
    )
    return float(server.evaluate_binary(question=question, answer=truth, prediction=predict)["result"])


@functools.cache
def _judge(model: str, base_url: str, api_key: str | None) -> JudgeServer:
    arguments = {"api_key": api_key} if api_key else {}
    return JudgeServer(ServerConfig(model, max_tokens=5), JudgeOptions(f"openai:{model}", base_url, arguments))


def compute_score(
    data_source: str,  # noqa: ARG001 - the family's parameter
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Score a reply: nine tenths for its answer, one tenth for its form."""
    answer = simple_parse(extract_anwser_tag(solution_str).strip())
    form = format_reward(solution_str)
    accuracy = acc_reward(answer, ground_truth, extra_info, form, solution_str)
    return {
        "score": ACCURACY_WEIGHT * accuracy + FORMAT_WEIGHT * form,
        "acc_score": accuracy,
        "format_reward_score": form,
        "predict_str": answer,
        "ground_truth": simple_parse(ground_truth),
    }


def make_reasoning_doc_to_messages(
    doc_to_visual_fn: Callable[[Any], Sequence[Any] | None],
    doc_to_text_fn: Callable[[Any, Any], str],
    system_prompt: str | None = None,
) -> Callable[..., list[dict[str, Any]]]:
    """Make a ``doc_to_messages``: the system prompt, then media and question.

    The functions return the media of a document, or ``None``, and its question with the model's settings.
    """

    def doc_to_messages(doc: Doc, lmms_eval_specific_kwargs: Any = None) -> list[dict[str, Any]]:
        media = [_media_part(visual) for visual in doc_to_visual_fn(doc) or ()]
        question = {"type": "text", "text": doc_to_text_fn(doc, lmms_eval_specific_kwargs).strip()}
        return [
            {"role": "system", "content": [{"type": "text", "text": system_prompt or SYSTEM_PROMPT}]},
            {"role": "user", "content": [*media, question]},
        ]

    return doc_to_messages


def _media_part(visual: Any) -> dict[str, Any]:
    """Build a message part; a name without an ending is a picture's, as in the family."""
    if isinstance(visual, str) and not visual.startswith("data:") and not PurePosixPath(visual).suffix:
        return {"type": "image", "url": visual}
    return visual_to_content(visual)


def make_reasoning_process_results(
    data_source: str,
    doc_to_text_fn: Callable[[Any, Any], str],
    gt_key: str = "answer",
    metrics_prefix: str = "",
    extra_info_fn: Callable[[Any], Mapping[str, Any]] | None = None,
) -> Callable[[Any, Sequence[str]], dict[str, float]]:
    """Make a ``process_results``: the means of ``acc_score`` and ``format_score`` over the answers, 0 without one.

    ``data_source`` has no effect on scores. ``gt_key`` is the field of the document with the right answer. The judge
    sees the question, and ``compute_score`` gets the mapping of ``extra_info_fn``.
    """

    def process_results(doc: Doc, results: Sequence[str]) -> dict[str, float]:
        truth = str(doc[gt_key])
        info = {"question": doc_to_text_fn(doc, None), **(extra_info_fn(doc) if extra_info_fn else {})}
        scores = [compute_score(data_source, answer.strip(), truth, info) for answer in results]
        shown = {"acc_score": "acc_score", "format_score": "format_reward_score"}
        return {
            metrics_prefix + name: sum(score[key] for score in scores) / max(1, len(scores))
            for name, key in shown.items()
        }

    return process_results

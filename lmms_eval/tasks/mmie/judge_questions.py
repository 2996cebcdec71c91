"""The judge's question about a question and a model's answer (MMIE specification §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.judging import JudgeQuestion
from lmms_eval.api.messages import ChatContent, ChatImageContent, ChatMessage, ChatMessages, ChatTextContent
from lmms_eval.api.request import GeneratedImage
from lmms_eval.errors import MediaError
from lmms_eval.tasks.mmie.data.documents import question_of
from lmms_eval.tasks.mmie.data.files import image_finder
from lmms_eval.tasks.mmie.data.records import Segment
from lmms_eval.tasks.mmie.judge_prompts import JudgeTexts, prompts
from lmms_eval.tasks.mmie.scoring import QUESTION, is_readable
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import Piece, View, build_view
from lmms_eval.utils.picture_marks import count_marks, in_words

MAX_NEW_TOKENS = 1024


def questions(doc: Mapping[str, Any], answer: Any, settings: Settings) -> list[JudgeQuestion]:
    """Return the question to the judge, or an empty list for a skipped sample.

    Raises:
        MediaError: a picture of the question is missing and the settings are strict.
        DataError: the data is missing, or the judge's texts cannot be read.
    """
    view = view_of(doc, answer_segments(answer), settings)
    if view.is_skipped:
        return []
    reference = question_of(doc).reference_text
    return [judge_question(view, str(doc["category"]), reference, prompts(settings.judge_prompts))]


def view_of(doc: Mapping[str, Any], answer: Sequence[Segment], settings: Settings) -> View:
    """Return the judge's view of a document and an answer.

    Raises:
        MediaError: a picture of the question is missing and the settings are strict.
        DataError: the data is missing.
    """
    finder = image_finder(settings)
    view = build_view(question_of(doc).question, answer, finder, settings.view_options)
    if view.missing and settings.strict_images:
        raise MediaError(f"MMIE, {doc['id']}: the picture {view.missing[0]} is not there (strict_images)")
    return view


def answer_segments(answer: Any) -> tuple[Segment, ...]:
    """Return the texts and pictures of an answer in order, each picture with the text before it.

    Descriptions without a picture are put into words, because a judge would take a mark for a picture.
    """
    segments: list[Segment] = []
    text: str | None = None
    for part in _parts(answer):
        if isinstance(part, GeneratedImage):
            segments.append(Segment(text, part.path))
            text = None
        elif words := in_words(part).strip():
            text = words if text is None else f"{text}\n{words}"
    if text is not None or not segments:
        segments.append(Segment(text or ""))
    return tuple(segments)


def described(answer: Any) -> int:
    """Count the pictures that the answer describes but that were not drawn."""
    return sum(count_marks(part) for part in _parts(answer) if isinstance(part, str))


def _parts(answer: Any) -> tuple[Any, ...]:
    return tuple(getattr(answer, "parts", ())) or (str(answer),)


def judge_question(view: View, category: str, reference: str | None, prompts: JudgeTexts) -> JudgeQuestion:
    """Return one user turn of texts and pictures in their order, to be answered without sampling."""
    pieces = judge_pieces(view, category, reference, prompts)

    def build() -> ChatMessages:
        from lmms_eval.media import header

        parts: list[ChatContent] = []
        for piece in pieces:
            if isinstance(piece, str):
                parts.append(ChatTextContent(text=piece))
            else:
                header(piece.value)  # raises for a file that is not a picture
                parts.append(ChatImageContent(url=piece.value))
        return ChatMessages(messages=[ChatMessage(role="user", content=parts)])

    generation = {"max_new_tokens": MAX_NEW_TOKENS, "do_sample": False, "temperature": 0}
    return JudgeQuestion(QUESTION, build, is_readable, generation, {"category": category})


def judge_pieces(view: View, category: str, reference: str | None, prompts: JudgeTexts) -> list[Piece]:
    """Return the whole prompt in order, with neighbouring texts joined and empty ones dropped.

    Only MSR has a reference answer, which may be empty.
    """
    correct = ["\n### Correct Answer\n", prompts.lead_in, reference or ""] if category == "MSR" else []
    found: list[Piece] = []
    for piece in (
        prompts.systems[category],
        "### Question\n",
        *view.question_pieces,
        "\n### Answer\n",
        *view.answer_pieces,
        *correct,
        "\n### Feedback\n",
    ):
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        elif piece != "":
            found.append(piece)
    return found

"""Functions of the task YAML: messages from documents, judge's questions and scores from answers, and results.

The task options are those of ``settings.Settings``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval import stats
from lmms_eval.api.judging import JudgeQuestion, Verdict
from lmms_eval.api.outcome import BenchmarkReport, Estimate, TaskNumbers, Unscored
from lmms_eval.errors import MediaError
from lmms_eval.tasks._task_utils import file_utils
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks._task_utils.submissions import submission_path, write_whole
from lmms_eval.tasks.mmie import judge_prompts, judge_questions, scores_file, scoring, submission, summary
from lmms_eval.tasks.mmie.data.documents import question_of
from lmms_eval.tasks.mmie.data.files import image_finder
from lmms_eval.tasks.mmie.settings import Settings
from lmms_eval.tasks.mmie.view import PLACEHOLDER
from lmms_eval.utils.picture_marks import INSTRUCTION

_DROPPED = re.compile(r"[^\w\s<>]")
_SPACE = re.compile(r"\s+")


def segments_of(doc: Mapping[str, Any], role: str) -> Sequence[Mapping[str, Any]]:
    """Return the segments of the last turn of a role (``human``, ``gpt``), or an empty sequence."""
    own = {"human": "question", "gpt": "gt_answer"}[role]
    if doc.get(own) is not None:
        content: Any = doc[own]
    else:
        turns = [turn for turn in doc.get("conversations") or () if turn.get("from") == role]
        content = turns[-1].get("content") if turns else None
    return content or ()


def segments_text(segments: Sequence[Mapping[str, Any]]) -> str:
    """Join trimmed texts, and a line ``<image>`` for each picture, by line breaks, without empty ones."""
    lines: list[str] = []
    for segment in segments:
        if text := str(segment.get("text") or "").strip():
            lines.append(text)
        if segment.get("image"):
            lines.append(PLACEHOLDER)
    return "\n".join(lines)


def normalise(text: str | None) -> str:
    """Lower the case, collapse white space, and keep only word characters, spaces and angle brackets. Null is empty."""
    return _DROPPED.sub("", _SPACE.sub(" ", (text or "").strip().lower()))


def token_f1(reference: str | None, prediction: str | None) -> float:
    """Return the F1 of the two sets of tokens. It is 0 if either is empty, even if both are."""
    wanted, found = set(normalise(reference).split()), set(normalise(prediction).split())
    common = len(wanted & found)
    if not common:
        return 0.0
    precision, recall = common / len(found), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


def exact_match(reference: str | None, prediction: str | None) -> float:
    """Return 1 if the normalised texts are equal, also if both are empty, else 0."""
    return float(normalise(reference) == normalise(prediction))


def question_pieces(doc: Mapping[str, Any], settings: Settings) -> list[str | Path]:
    """Return the texts (trimmed, not empty) and the files of the pictures in order.

    Raises ``MediaError`` if a picture is missing and the settings are strict; otherwise it is left out.
    """
    finder = image_finder(settings)
    pieces: list[str | Path] = []
    for segment in question_of(doc).question:
        if segment.text and segment.text.strip():
            pieces.append(segment.text.strip())
        if segment.image is None:
            continue
        found = finder.find(segment.image)
        if found is not None:
            pieces.append(Path(found))
        elif settings.strict_images:
            raise MediaError(f"MMIE, {doc['id']}: the picture {segment.image} is not there (strict_images)")
    return pieces


def _asked(doc: Mapping[str, Any], settings: Settings) -> list[str | Path]:
    """Return the question's pieces and, for models that cannot draw, the request for described pictures."""
    given = settings.ask_pictures
    wording = given if isinstance(given, str) else INSTRUCTION if given else ""
    return [*question_pieces(doc, settings), *([wording] if wording else [])]


Options = Mapping[str, Any] | None


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[dict[str, Any]]:
    """Return one user turn with the texts and pictures of the question in order. Missing pictures are left out.

    Raises ``MediaError`` if a picture cannot be read, or is missing and the settings are strict.
    """
    pieces = _asked(doc, Settings.of(lmms_eval_specific_kwargs))
    content = [{"type": "text", "text": piece} if isinstance(piece, str) else image_part(piece) for piece in pieces]
    return [{"role": "user", "content": content}]


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """Return the question with ``<image>`` in place of each existing picture."""
    pieces = _asked(doc, Settings.of(lmms_eval_specific_kwargs))
    return "\n".join(piece if isinstance(piece, str) else PLACEHOLDER for piece in pieces)


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[Any]:
    """Return the pictures of the question, opened (RGB), in order."""
    pieces = question_pieces(doc, Settings.of(lmms_eval_specific_kwargs))
    return [open_image(piece) for piece in pieces if isinstance(piece, Path)]


def doc_to_target(doc: Mapping[str, Any]) -> str:
    """Return the reference answer's texts, with a line ``<image>`` for each of its pictures."""
    return segments_text(segments_of(doc, "gpt"))


def doc_to_judge(
    doc: Mapping[str, Any], results: Sequence[Any], lmms_eval_specific_kwargs: Options = None
) -> list[JudgeQuestion]:
    """Return the question to the judge."""
    return judge_questions.questions(doc, results[0] if results else "", Settings.of(lmms_eval_specific_kwargs))


@depends_on(judge_prompts.prompts_identity)
def process_results(
    doc: Mapping[str, Any],
    results: Sequence[Any],
    verdicts: Mapping[str, Verdict] | None = None,
    lmms_eval_specific_kwargs: Options = None,
) -> dict[str, Any]:
    """Return the score under the metric's name (``Unscored`` without a reply and for skipped samples), all facts about
    the sample (``judged``), and its record for ``main.py`` (``answers``).

    Raises:
        MediaError: a picture is missing and the settings are strict.
        DataError: the judge's texts cannot be read.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    answer = results[0] if results else ""
    segments = judge_questions.answer_segments(answer)
    view = judge_questions.view_of(doc, segments, settings)
    judged = scoring.judged(view, verdicts or {}, settings)
    sample = {
        "id": doc["id"],
        "position": doc["position"],
        "category": doc["category"],
        "field": doc["field"],
        "subfield": doc["subfield"],
        "outcome": judged.outcome,
        "score": judged.score,
        "reason": judged.reason,
        "repeats": list(judged.repeats),
        "answer_chars": sum(len(segment.text or "") for segment in segments),
        "answer_images": sum(segment.image is not None for segment in segments),
        "lost_texts": view.lost_texts,
        "lost_images": view.lost_images,
        "missing_images": len(view.missing),
        "undrawn": judge_questions.described(answer),
    }
    name = judge_prompts.prompts(settings.judge_prompts).metric
    value: Any = {"score": judged.score, "outcome": judged.outcome}
    if judged.outcome in ("unscored", "skipped"):
        value = Unscored(judged.reason)
    strict = {"score": judged.score or 0, "outcome": judged.outcome}
    return {name: value, f"{name}_strict": strict, "judged": sample, "answers": submission.answer_record(doc, segments)}


def aggregate_official(values: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the mean over the samples with a readable score, 0 to 6, with its standard error."""
    return _mean([value["score"] for value in values if value["score"] is not None])


def aggregate_strict(values: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the mean over all samples, 0 to 6, one without a score counting 0. Without replies it is missing."""
    is_judged = any(value["outcome"] in ("scored", "unparsable") for value in values)
    return _mean([value["score"] for value in values] if is_judged else [])


def aggregate_judged(samples: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Return the number of scores. The details hold what the benchmark's report needs, and a file has the scores.

    Raises ``DataError`` if the file of human scores cannot be used, or a file cannot be written.
    """
    table = summary.table(samples)
    settings = Settings.of(task.prompts.kwargs)
    used = judge_prompts.prompts(settings.judge_prompts)
    part: dict[str, Any] = {
        "metric": used.metric,
        "prompts": {"source": used.source, "official": used.is_official, "sha256": used.fingerprints()},
        "view": settings.view,
        "t2i": getattr(args, "t2i", None),
        **table.as_dict(),
        "notes": {
            "cut_answers": sum(sample["lost_texts"] > 0 or sample["lost_images"] > 0 for sample in samples),
            "missing_images": sum(sample["missing_images"] for sample in samples),
            "undrawn_pictures": sum(sample["undrawn"] for sample in samples),
            "answers_with_pictures": sum(sample["answer_images"] > 0 for sample in samples),
            "skipped_ids": [sample["id"] for sample in samples if sample["outcome"] == "skipped"],
        },
        "sensitivity": summary.sensitivity(samples),
    }
    if (repeats := summary.repeat_agreement(samples)) is not None:
        part["repeats"] = repeats
    if settings.human_scores:
        file = Path(settings.human_scores)
        human = scores_file.read_scores(file)
        part["calibration"] = scores_file.calibration(samples, human, scores_file.planned(file))
    details: dict[str, Any] = {"mmie": part}
    if (path := submission_path(args, f"{task.name}_scores.csv")) is not None:
        write_whole(path, scores_file.scores_csv(samples))
        details["submission_files"] = [str(path)]
    return Estimate(table.categories[summary.OVERALL].scored, details=details)


def aggregate_answers(records: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """Write the answers in the benchmark's own form, for ``main.py``, if there is an output folder. Return no value.

    Raises ``DataError`` if the file cannot be written.
    """
    path = submission_path(args, f"{task.name}_to_evaluate.json")
    if path is None:
        return Estimate(None)
    submission.write_answers(records, file_utils.shared_model_name(args), path)
    return Estimate(None, details={"submission_files": [str(path)]})


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Report AVG and the categories, fields and subfields over the tasks of a run."""
    from lmms_eval.tasks.mmie.report import report as whole

    return whole(tasks, stem)


def f1_doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """Return the question as lmms-eval asks it."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    return f"{settings.pre_prompt}{segments_text(segments_of(doc, 'human'))}{settings.post_prompt}"


f1_doc_to_target = doc_to_target


def f1_process_results(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, float]:
    """Return token F1 and exact match of the answer's text."""
    reference, reply = f1_doc_to_target(doc), str(results[0]) if results else ""
    return {"mmie_f1": token_f1(reference, reply), "mmie_exact_match": exact_match(reference, reply)}


def aggregate_f1(values: Sequence[float]) -> float:
    """Return the plain mean, or 0 without values."""
    return summary.mean(values) or 0.0


def _mean(scores: Sequence[float]) -> Estimate:
    error = stats.mean_stderr(scores) if len(scores) > 1 else None
    return Estimate(summary.mean(scores), error)

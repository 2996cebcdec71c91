"""EgoSchema: multiple choice, with five options, about three-minute videos seen through the wearer's eyes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.metrics.mmmu import egoschema_letter, egoschema_named
from lmms_eval.tasks._task_utils.estimates import mean
from lmms_eval.tasks._task_utils.question import LETTERS, Doc, Settings, framed
from lmms_eval.tasks._task_utils.submissions import stamp, written_json
from lmms_eval.tasks._task_utils.videos import MediaFolder

VIDEOS = MediaFolder(
    "egoschema",
    "lmms-eval/egoschema",
    ("egoschema", "egoschema_subset", "egoschema_mcppl", "egoschema_subset_mcppl"),
)
INSTRUCTION = "Answer with the option's letter from the given choices directly."


def doc_to_visual(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> list[str]:
    """Return the path of the video. Raises ``MediaError`` if it is not there."""
    names = [f"videos/{doc['video_idx']}.{ending}" for ending in ("mp4", "MP4")]
    return [VIDEOS.find(*names, settings=lmms_eval_specific_kwargs)]


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Settings = None) -> str:
    """Return question, options and instruction; the end of the frame appears only without options."""
    if not doc.get("option"):
        return framed(doc["question"], lmms_eval_specific_kwargs)
    before = (lmms_eval_specific_kwargs or {}).get("pre_prompt") or ""
    return "\n".join((f"{before}{doc['question']}", *doc["option"], INSTRUCTION))


def doc_to_choice(doc: Doc) -> list[str]:
    """Return of each option the text between its first full stop, that of its letter, and its second one.

    Raises:
        ItemError: there are no options, or one has no full stop.
    """
    texts = [option.split(".") for option in _options(doc)]
    if any(len(pieces) == 1 for pieces in texts):
        raise ItemError(
            f"egoschema: column 'option' holds {doc['option']!r}: each must begin with a letter such as 'A.'"
        )
    return [pieces[1].strip() for pieces in texts]


def _options(doc: Doc) -> list[str]:
    if not doc.get("option"):
        raise ItemError(f"egoschema: column 'option' holds {doc.get('option')!r}: it must be a list of options")
    return list(doc["option"])


def doc_to_gold(doc: Doc) -> str:
    """Return the letter of the right option; empty if the answers are withheld."""
    return "" if doc["answer"] is None else LETTERS[int(doc["answer"])]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, Any]:
    """Return the number of the option that the answer names, or of one drawn for the document.

    The reference looks for options together with their letters, so that it finds none in an answer that repeats an
    option without its letter. For ``score_fixed`` such an answer names the option, and one that names none is wrong.

    Raises:
        ItemError: there are no options.
    """
    options = dict(zip(LETTERS, _options(doc), strict=False))
    letter = egoschema_letter(results[0], options, f"{doc['video_idx']}:{doc['question_idx']}")
    bare = {key: option.removeprefix(f"{key}.").strip(" .") for key, option in options.items()}
    named = egoschema_named(results[0], {key: text for key, text in bare.items() if text})
    fixed = {"pred": -1 if named is None else LETTERS.index(named), "ground_truth": doc["answer"]}
    return {**_scored(doc, LETTERS.index(letter)), "score_fixed": fixed}


def process_likelihoods(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return the number of the likeliest option; ``results`` holds loss and greediness of each."""
    losses = [loss for loss, _ in results]
    return _scored(doc, losses.index(min(losses)))


def _scored(doc: Doc, said: int) -> dict[str, Any]:
    return {"submission": {doc["video_idx"]: said}, "score": {"pred": said, "ground_truth": doc["answer"]}}


def aggregate(results: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the share of right answers, compared as texts."""
    return mean([float(str(result["pred"]) == str(result["ground_truth"])) for result in results])


def write_submission(results: Sequence[Mapping[str, int]], args: Any = None) -> Estimate:
    """Write the file of answers to the whole set: one mapping from video to number of the option."""
    return _written(results, "MC", args)


def write_submission_likelihoods(results: Sequence[Mapping[str, int]], args: Any = None) -> Estimate:
    """Write the file of the likeliest options."""
    return _written(results, "MC_PPL", args)


def _written(results: Sequence[Mapping[str, int]], kind: str, args: Any) -> Estimate:
    answers = {video: said for one in results for video, said in one.items()}
    return written_json(answers, f"inference_results_egoschema_{kind}_{stamp()}.json", args)

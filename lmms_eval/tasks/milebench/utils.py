"""The functions that the YAML files name: document to prompt, answer to scores, scores to the task's numbers.

The task options are those of ``settings.Settings``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.outcome import BenchmarkReport, Estimate, TaskNumbers
from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils import file_utils
from lmms_eval.tasks._task_utils.documents import once_per_document
from lmms_eval.tasks._task_utils.pictures import image_part, open_image
from lmms_eval.tasks.milebench import data, prompts, submission
from lmms_eval.tasks.milebench.facts import find
from lmms_eval.tasks.milebench.prompts import Budget, Picture, Prompt, Sample
from lmms_eval.tasks.milebench.scoring import DatasetFacts, SampleScore, score_sample
from lmms_eval.tasks.milebench.settings import Settings
from lmms_eval.tasks.milebench.sheets import draw_sheet, plan_sheets
from lmms_eval.tasks.milebench.tokenizers import tokenizer

Options = Mapping[str, Any] | None


def doc_to_text(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> str:
    """The prompt's text with an image token for every picture. No picture is opened."""
    return prompt_of(doc, Settings.of(lmms_eval_specific_kwargs)).simple_text


def doc_to_visual(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[Any]:
    """The pictures of the prompt, opened (RGB), in order."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    found = []
    for part in prompt_of(doc, settings).parts:
        if isinstance(part, Picture):
            file = _file(doc, settings, part.path)
            found.append(open_image(file) if file is not None else _sheet(doc, settings, part.path))
    return found


def doc_to_messages(doc: Mapping[str, Any], lmms_eval_specific_kwargs: Options = None) -> list[dict[str, Any]]:
    """One user turn: texts and pictures in their places. Pictures that need no change are given as paths."""
    settings = Settings.of(lmms_eval_specific_kwargs)
    content: list[dict[str, Any]] = []
    for part in prompt_of(doc, settings).parts:
        if isinstance(part, Picture):
            file = _file(doc, settings, part.path)
            sheet = None if file is not None else _sheet(doc, settings, part.path)
            content.append(image_part(file) if file is not None else {"type": "image", "url": sheet})
        else:
            content.append({"type": "text", "text": part})
    return [{"role": "user", "content": content}]


def doc_to_target(doc: Mapping[str, Any]) -> str:
    """The reference answer; for choice questions the text of the option."""
    return str(doc["response"])


def doc_to_gold(doc: Mapping[str, Any]) -> str:
    """A reply that deserves full marks by both sets of rules, for ``--model baseline --model_args strategy=gold``."""
    wanted = str(doc["response"])
    choices = [str(choice) for choice in doc["choice_list"] or ()]
    letters = [chr(65 + place) for place, choice in enumerate(choices[:26]) if choice == wanted]
    candidates = [f"{letter}. {wanted}" for letter in letters] + [wanted, *letters]

    def marks(reply: str) -> float:
        score = judge(doc, reply)
        return 0.0 if score.error is not None else float(score.score or 0) + float(score.fixed or 0)

    return max(candidates, key=marks)


def process_results(
    doc: Mapping[str, Any], results: Sequence[Any], lmms_eval_specific_kwargs: Options = None
) -> dict[str, Any]:
    """The official and the fixed score, and the record of ``pred.json`` with what the benchmark's report needs.

    Raises:
        DataError: the reference answer is missing, or is none of the options: the sample fails.
    """
    settings = Settings.of(lmms_eval_specific_kwargs)
    reply = str(results[0]) if results else ""
    score = judge(doc, reply)
    if score.error is not None:
        raise DataError(f"MileBench, {doc['dataset']}, sample {doc['sample_id']}: {score.error}")
    record = {
        **submission.record(doc, prompt_of(doc, settings), reply),
        "score": score.score,
        "fixed": score.fixed,
        "sequence": score.sequence,
        "metric": score.metric,
        "level": score.level,
        "step": score.step,
        "fixed_step": score.fixed_step,
        "extracted": score.extracted,
        "fixed_extracted": score.fixed_extracted,
        "no_answer": int(score.is_empty),
        "needle_depth": doc.get("needle_depth"),
        "needle_length": doc.get("needle_length"),
    }
    if score.note:
        record["note"] = score.note
    name = find(str(doc["dataset"])).metric
    return {name: score.score, f"{name}_fixed": score.fixed, "predictions": record}


def judge(doc: Mapping[str, Any], reply: str) -> SampleScore:
    """The scores of a reply by both sets of rules."""
    sample = {
        "sample_id": doc["sample_id"],
        "response": doc["response"],
        "task_instance": {"images_path": doc["images_path"], "choice_list": doc["choice_list"]},
    }
    return score_sample(DatasetFacts(str(doc["dataset"]), str(doc["question_type"])), sample, reply)


def aggregate_predictions(records: Sequence[Mapping[str, Any]], args: Any, task: Any) -> Estimate:
    """No number: the details hold what the report needs, and the path of ``OUT/milebench/MODEL/NAME/pred.json``, which
    is written where there is an output folder."""
    from lmms_eval.tasks.milebench.summary.dataset import estimate

    if not records:
        return Estimate(None)
    described = task.describe()
    settings = Settings.of(described.get("lmms_eval_specific_kwargs"))
    details = dict(estimate(records, described["dataset_name"], settings.variant).details)
    output_path = getattr(args, "output_path", None)
    if not output_path:
        return Estimate(None, details=details)
    marks = ["adv"] if settings.adversarial else []
    marks += [f"combined_{settings.combine_image}"] if settings.combine_image else []
    top = "milebench" if settings.data_folder is None else "milebench_demo"
    path = file_utils.model_folder(output_path, args, marks, top) / described["dataset_name"] / submission.FILE
    text = submission.dumps(records, file_utils.shared_model_name(args), described.get("generation_kwargs") or {})
    submission.write(text, path)
    return Estimate(None, details={**details, "submission_files": [str(path.resolve())]})


def report(tasks: Mapping[str, TaskNumbers], stem: Path | None) -> BenchmarkReport | None:
    """Groups, overall figures and the curve over the number of pictures, over the tasks of a run."""
    from lmms_eval.tasks.milebench.report import report as whole

    return whole(tasks, stem)


@once_per_document
def prompt_of(doc: Mapping[str, Any], settings: Settings) -> Prompt:
    """The finished prompt of a document; paths start at the data's root folder.

    Raises:
        DataError: the official prompt takes one sheet and the sample has more.
    """
    choices = doc["choice_list"]
    sample = Sample(
        sample_id=int(doc["sample_id"]),
        dataset=str(doc["dataset"]),
        instruction=str(doc["instruction"]),
        context=str(doc["context"]),
        images=tuple(doc["images_path"]),
        choices=None if choices is None else tuple(choices),
        sheets=_sheet_names(doc, settings) if settings.combine_image else None,
    )
    make = prompts.official if settings.prompt_mode == "official" else prompts.by_index
    return make(sample, f"{sample.dataset}/images", _budget(settings), settings.combine_image)


def _budget(settings: Settings) -> Budget | None:
    if settings.max_context_len is None or settings.n_tokens_per_image is None or settings.tokenizer is None:
        return None
    return Budget(settings.max_context_len, settings.n_tokens_per_image, tokenizer(settings.tokenizer))


def _sheet_names(doc: Mapping[str, Any], settings: Settings) -> tuple[str, ...]:
    """As the annotation has them, else as they would be made."""
    if doc.get("sheets") is not None:
        return tuple(doc["sheets"])
    sheets = plan_sheets(doc["sample_id"], len(doc["images_path"]), settings.combine_image)
    return tuple(sheet.file for sheet in sheets)


def _file(doc: Mapping[str, Any], settings: Settings, path: str) -> Path | None:
    """A picture's file; ``None`` for a sheet that must be drawn."""
    file = data.root(str(doc["dataset"]), settings).absolute() / path
    return None if settings.combine_image and not file.is_file() else file


def _sheet(doc: Mapping[str, Any], settings: Settings, path: str) -> Any:
    """A sheet drawn from its pictures.

    Raises:
        DataError: the annotation names sheets that are neither there nor ours. MediaError: a picture cannot be read.
    """
    folder = data.root(str(doc["dataset"]), settings).absolute() / str(doc["dataset"]) / "images"
    sheets = plan_sheets(doc["sample_id"], len(doc["images_path"]), settings.combine_image)
    found = next((sheet for sheet in sheets if sheet.file == Path(path).name), None)
    if found is None:
        raise DataError(
            f"MileBench, {doc['dataset']}, sample {doc['sample_id']}: there is no sheet {path}; make it with "
            "combine_images.py"
        )
    return draw_sheet(found, [folder / image for image in doc["images_path"]], settings.font_size)

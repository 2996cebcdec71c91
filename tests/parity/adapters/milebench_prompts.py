"""MileBench: prompts, combined sheets, and the predictions that a run writes. Scoring: ``milebench_scoring``."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench import data, prompts, submission
from lmms_eval.tasks.milebench.prompts import ContextBudget, FinishedPrompt, PlacedPicture, PromptParts, tokenizer
from lmms_eval.tasks.milebench.settings import Settings
from lmms_eval.tasks.milebench.sheets import SheetLayout, draw_sheet, plan_sheets
from tests.parity.keys import Keys, keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, path_adapter

TOKENIZERS = {"char": "characters", "word": "words"}
DRAWN_IMAGES = 4
"""Layouts of more pictures are compared as plans, without drawing."""
NULL_CHOICES = "milebench_null_choices_are_none"


@line_adapter("milebench/units/prompts.jsonl")
@keyed(
    "dataset", "tokenizer", "max_context_len", "n_tokens_per_image", "combine_image", "img_dir", "task_instruction.*",
    "sample.sample_id", "sample.task_instruction_id", "sample.task_instance.*", "sample.response",
    "result.item.sample_id", "result.item.context", "result.item.raw_img_list.*", "result.item.response",
    information={
        "sample.*": "of no use for a prompt",
        "result.error": "the type of the reference's exception is not compared (scoring rules §2)",
    },
)  # fmt: skip
def check_prompt(vector: Vector) -> Verdict:
    record = vector.record
    sample, sheets = sample_of(record), record["combine_image"] or 0
    budget = ContextBudget(
        record["max_context_len"], record["n_tokens_per_image"], tokenizer(TOKENIZERS[record["tokenizer"]])
    )
    error = record["result"].get("error")
    try:
        made = prompts.official(sample, record["img_dir"], budget, sheets)
    except DataError as refused:
        return PASSED if error is not None else failed(f"raised {refused}")
    if error == "TypeError" and record["sample"]["task_instance"]["choice_list"] is None:
        return deviates(NULL_CHOICES) if "Choice list" not in made.text else failed(f"found {made.text!r}")
    wanted = record["result"].get("item")
    if wanted is None:
        return failed(f"{made!r} instead of {record['result']!r}")
    if isinstance(record["sample"]["sample_id"], str):  # a text of digits in an annotation is a number (specification)
        wanted = {**wanted, "sample_id": int(wanted["sample_id"])}
    found = item_of(record, made)
    wrong = [key for key, value in wanted.items() if key not in found or found[key] != value]
    if wrong:
        return failed(f"{', '.join(wrong)}: {found!r} instead of {wanted!r}")
    return parts_verdict(made)


def item_of(record: Mapping[str, Any], made: FinishedPrompt) -> dict[str, Any]:
    """The finished item, through the document and the prediction's record that a run makes of the sample."""
    meta = {"task_instruction": record["task_instruction"]}
    settings = Settings(combine_image=record["combine_image"] or 0)
    doc = data.row(record["sample"], meta, "the vector", record["dataset"], settings)
    predicted = submission.record(doc, made, "")
    return {
        "sample_id": predicted["sample_id"],
        "context": predicted["question"],
        "raw_img_list": list(made.images),
        "response": predicted["gt_response"],
    }


def sample_of(record: Mapping[str, Any]) -> PromptParts:
    stated = record["sample"]
    instance = stated["task_instance"]
    choices, sheets = instance.get("choice_list"), instance.get(f"combined_{record['combine_image']}_images")
    return PromptParts(
        sample_id=stated["sample_id"],
        dataset=record["dataset"],
        instruction=record["task_instruction"][stated["task_instruction_id"]],
        context=instance["context"],
        images=tuple(instance["images_path"]),
        choices=None if choices is None else tuple(map(str, choices)),
        sheets=None if sheets is None else tuple(sheets),
    )


def parts_verdict(made: FinishedPrompt) -> Verdict:
    """What a chat model gets: the kept pictures in order, where the markers stand, and no marker in a text."""
    shown = [part.path for part in made.parts if isinstance(part, PlacedPicture)]
    markers = made.text.count(prompts.MARKER)
    said = [part for part in made.parts if isinstance(part, str)]
    if shown != list(made.images[:markers]) or any(prompts.MARKER in text for text in said):
        return failed(f"parts {made.parts!r} of {made.text!r}")
    back = "".join(prompts.MARKER if isinstance(part, PlacedPicture) else part for part in made.parts)
    same = back == made.text or markers > len(made.images)
    return PASSED if same else failed(f"parts {made.parts!r} of {made.text!r}")


@line_adapter("milebench/units/combine_layout.jsonl")
@keyed(
    "sample_id", "n_images", "max_img_num", "sheets.*.file", "sheets.*.size.*", "sheets.*.mode", "sheets.*.captions.*"
)
def check_layout(vector: Vector) -> Verdict:
    record = vector.record
    plans = plan_sheets(record["sample_id"], record["n_images"], record["max_img_num"])
    found = [{"file": plan.file, "size": list(plan.size), "mode": "RGB", "captions": plan.captions} for plan in plans]
    if found != record["sheets"]:
        return failed(f"{found} instead of {record['sheets']}")
    return drawn_verdict(plans, record) if record["n_images"] <= DRAWN_IMAGES else PASSED


def drawn_verdict(plans: Sequence[SheetLayout], record: Mapping[str, Any]) -> Verdict:
    """The sheets as they are drawn from small pictures."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.png"
        Image.new("RGB", (8, 6), "red").save(file)
        drawn = [draw_sheet(plan, [file] * record["n_images"]) for plan in plans]
    found = [(list(image.size), image.mode) for image in drawn]
    wanted = [(sheet["size"], sheet["mode"]) for sheet in record["sheets"]]
    return PASSED if found == wanted else failed(f"drawn {found} instead of {wanted}")


RUNS = Keys(
    ("runs.*.combine_image", "runs.*.output"),
    {
        "echo_rule": "in words",
        "tokenizer": "in words",
        "runs.*.batch_image": "the order of predictions does not depend on it",
        "runs.*.batch_sizes_seen*": "information only (scoring rules §4)",
    },
)


@path_adapter("milebench/generate")
def check_generation(folder: Path) -> Sequence[Verdict]:
    """The predictions of every run, with the echo worker in place of a model."""
    model = yaml.safe_load((folder / "model_configs.yaml").read_text("utf-8"))["echo-cli"]
    content = json.loads((folder / "runs.json").read_text("utf-8"))
    if unseen := RUNS.unseen(content):
        return [failed(unseen)]
    return [run_verdict(folder, run, model) for run in content["runs"]]


def run_verdict(folder: Path, run: Mapping[str, Any], model: Mapping[str, Any]) -> Verdict:
    settings = Settings(
        combine_image=run["combine_image"] or 0,
        max_context_len=model["max_context_len"],
        n_tokens_per_image=model["n_tokens_per_image"],
        tokenizer="characters",
    )
    meta, entries = data.read_annotation(folder / "data" / "ToyQA" / "ToyQA.json")
    records = []
    for entry in entries:
        doc = data.row(entry, meta, "ToyQA", "ToyQA", settings)
        prompt = prompts.prompt_of(doc, settings)
        echo = f"{len(prompt.images)} images, {len(prompt.text)} chars"
        records.append(submission.record(doc, prompt, echo))
    found = json.loads(submission.dumps(records, model["model_name"], model["gen_kwargs"]))
    wanted = json.loads((folder / run["output"]).read_text("utf-8"))
    for item in wanted:  # the reference puts its --data_dir in front
        item["image"] = [path.removeprefix("data/") for path in item["image"]]
    if [list(item) for item in found] != [list(item) for item in wanted]:
        return failed(f"{run['output']}: keys {[list(item) for item in found[:1]]}, {len(found)} records")
    wrong = [(mine, theirs) for mine, theirs in zip(found, wanted, strict=True) if mine != theirs]
    return PASSED if not wrong else failed(f"{run['output']}: {wrong[0][0]} instead of {wrong[0][1]}")

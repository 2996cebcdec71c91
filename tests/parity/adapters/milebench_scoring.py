"""MileBench: normalisation, judging, ROUGE-L and whole files. Prompts, sheets and generation: ``milebench_prompts``."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval.cli import milebench
from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.milebench.collection import collect, write_collection
from lmms_eval.tasks.milebench.scoring.fixed_choice import official_letter
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts, SampleScore, image_level
from lmms_eval.tasks.milebench.scoring.samples import distinct_word_rouge, normalise, score_sample
from lmms_eval.tasks.milebench.standalone import EVAL, SCORES, reported
from tests.parity.compare import agree
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, path_adapter

NAMES = {"token": "TextNeedleInAHaystack", "substring": "MMCoQA"}
NO_SENTENCE = "milebench_no_sentence_is_zero"
NO_LIMIT = "milebench_rouge_has_no_length_limit"
DIGIT_IDS = "milebench_digit_ids_are_accepted"


def verdict(is_right: bool, found: Any) -> Verdict:
    return PASSED if is_right else failed(f"found {found!r}")


def judged(facts: DatasetFacts, record: dict[str, Any], **instance: Any) -> SampleScore:
    sample = {"sample_id": 1, "response": record["gold"], "task_instance": {"images_path": [], **instance}}
    return score_sample(facts, sample, record["pred"], record["gold"])


@line_adapter("milebench/units/process.jsonl")
def check_process(vector: Vector) -> Verdict:
    found = normalise(vector.record["in"])
    return verdict(found == vector.record["out"], found)


@line_adapter("milebench/units/judge.jsonl")
def check_judge(vector: Vector) -> Verdict:
    record = vector.record
    found = judged(DatasetFacts("TQA", "multi-choice"), record, choice_list=record["choices"])
    if "error" in record:
        return verdict(found.error is not None and found.score is None, found)
    return verdict((found.score, found.extracted) == (record["score"], record["extracted"]), found)


@line_adapter("milebench/units/needle.jsonl")
def check_needle(vector: Vector) -> Verdict:
    found = judged(DatasetFacts(NAMES[vector.record["mode"]]), vector.record)
    return verdict(found.score == vector.record["score"], found)


@line_adapter("milebench/units/rouge_l.jsonl")
def check_rouge(vector: Vector) -> Verdict:
    record = vector.record
    found = judged(DatasetFacts("IEdit", "open-ended"), record)
    if "error" in record and has_no_sentence(record["pred"]) and not has_no_sentence(record["gold"]):
        return deviates(NO_SENTENCE) if found.score == 0 and found.note else failed(f"found {found!r}")
    if "error" in record:
        return verdict(found.error is not None and found.score is None, found)
    score = found.score
    return verdict(score is not None and score == record["score"] and reported(score) == record["reported"], found)


@line_adapter("milebench/units/rouge_l_long.jsonl")
def check_long_rouge(vector: Vector) -> Verdict:
    record = vector.record
    texts = [
        " ".join(f"{record[f'{side}_pattern'][0]}{index}" for index in range(record[f"{side}_words"]))
        for side in ("pred", "gold")
    ]
    found = distinct_word_rouge(*texts)
    if not agree(record["score_with_deeper_stack"], found):
        return failed(f"found {found!r}")
    return deviates(NO_LIMIT) if "error" in record else PASSED


@path_adapter("milebench/units/option_letter.json")
def check_letters(path: Path) -> Sequence[Verdict]:
    return [
        verdict(official_letter(entry["index"]) == entry["letter"], (entry, official_letter(entry["index"])))
        for entry in read_json(path)
    ]


@path_adapter("milebench/units/image_level.json")
def check_levels(path: Path) -> Sequence[Verdict]:
    return [
        verdict(image_level(entry["n_images"]) == entry["level"], (entry, image_level(entry["n_images"])))
        for entry in read_json(path)
    ]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What our script made of a data set: its exit code, and the files that it wrote by name."""

    code: int
    files: dict[str, Any]

    def has(self, result: dict[str, Any]) -> bool:
        """Are the recorded files here?"""
        return self.code == 0 and agree(result["eval"], self.files[EVAL]) and result["eval_score"] == self.files[SCORES]

    @property
    def scores(self) -> list[tuple[str, float]]:
        """Scores as numbers: how a zero is written for a text without a sentence, no specification says."""
        return [(one["id"], float(one["score"])) for one in self.files[SCORES]]


@line_adapter("milebench/units/file_cases.jsonl")
def check_file_case(vector: Vector) -> Verdict:
    record = vector.record
    found = evaluated(record, record["predictions"])
    if "error" not in record["result"]:
        return verdict(found.has(record["result"]), found)
    for rule, repair in REPAIRS.items():
        repaired = [repair(prediction) for prediction in record["predictions"]]
        if repaired == record["predictions"]:
            continue
        right = evaluated(record, repaired)
        if right.code == 0:
            is_right = found.code == 0 and agree(right.files[EVAL], found.files[EVAL]) and right.scores == found.scores
            return deviates(rule) if is_right else failed(f"found {found!r} instead of {right!r}")
    return verdict(found.code != 0 and not found.files, found)


def evaluated(record: dict[str, Any], predictions: Sequence[Any]) -> Evaluated:
    """The record's data set, scored with these predictions."""
    name = record["dataset"]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        write(root / "data" / name / f"{name}.json", record["annotation"])
        write(root / "out" / name / "pred.json", predictions)
        words = ["--data-dir", f"{root}/data", "--dataset", name, "--result-dir", f"{root}/out"]
        code = milebench.run(["evaluate", *words])
        return Evaluated(code, {file.name: read_json(file) for file in (root / "out" / name).glob("eval*.json")})


def has_no_sentence(text: Any) -> bool:
    """Is nothing but full stops left of the text (specification §7.5)?"""
    left = normalise(text) if isinstance(text, str) else ""
    return bool(left) and not left.strip(".")


def with_number_as_id(prediction: dict[str, Any]) -> dict[str, Any]:
    number = prediction.get("sample_id")
    return {**prediction, "sample_id": int(number)} if isinstance(number, str) and number.isdecimal() else prediction


def with_empty_text(prediction: dict[str, Any]) -> dict[str, Any]:
    return {**prediction, "pred_response": ""} if has_no_sentence(prediction.get("pred_response")) else prediction


REPAIRS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    DIGIT_IDS: with_number_as_id,
    NO_SENTENCE: with_empty_text,
}
"""Rules for predictions at which the reference stops, and what must be scored alike (specification §10)."""


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


@path_adapter("milebench/suite")
def check_suite(folder: Path) -> Sequence[Verdict]:
    with tempfile.TemporaryDirectory() as temporary:
        root = copied(folder / "outputs", Path(temporary) / "outputs")
        for model in sorted(root.iterdir()):
            flags = ["--adv"] if model.name.endswith("-adv") else []
            words = ["--data-dir", str(folder / "data"), "--result-dir", str(model), *flags]
            if milebench.run(["evaluate", *words]):
                return [failed(f"{model.name} was refused")]
        return list(suite_verdicts(folder / "expected", root))


def suite_verdicts(expected: Path, root: Path) -> Iterator[Verdict]:
    for path in sorted(expected.glob("*/*/*.json")):
        yield same_json(path, root / path.relative_to(expected))
    models = list(read_json(expected / "result.json"))
    for prefix, order in (("", models), ("reversed_order.", models[::-1])):
        write_collection(collect(root, order)[0], root)
        yield from same_table(expected, prefix, root)


def same_table(expected: Path, prefix: str, root: Path) -> Iterator[Verdict]:
    yield same_json(expected / f"{prefix}result.json", root / "result.json")
    wanted = (expected / f"{prefix}result.csv").read_text("utf-8")
    found = (root / "result.csv").read_text("utf-8")
    yield verdict(found == wanted, found)


def same_json(expected: Path, path: Path) -> Verdict:
    wanted, found = read_json(expected), read_json(path)
    if not agree(wanted, found):
        return failed(f"{path} differs from {expected}")
    return verdict(orders(wanted) == orders(found), f"other order of keys in {path}")


def orders(value: Any) -> Any:
    """The keys of all objects, in their order."""
    if isinstance(value, dict):
        return [(key, orders(item)) for key, item in value.items()]
    return [orders(item) for item in value] if isinstance(value, list) else None


def copied(source: Path, target: Path) -> Path:
    """A copy that can be written into, whatever the rights of the original."""
    for path in source.rglob("*.json"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    target.mkdir(exist_ok=True)
    return target


@path_adapter("milebench/score_cases/*")
def check_collection(folder: Path) -> Sequence[Verdict]:
    """The collected table; or the refusal that ``case.json`` wants, counted for each file of the reference."""
    case = read_json(folder / "case.json")
    is_refused = bool(case["exit_code"]) or "wanted" in case
    with tempfile.TemporaryDirectory() as temporary:
        root = copied(folder / "outputs", Path(temporary) / "outputs")
        try:
            write_collection(collect(root, case["models"])[0], root)
        except DataError as error:
            if not is_refused:
                return [failed(f"was refused: {error}")]
            written = sorted(path.name for path in root.glob("result.*"))
            unnamed = [name for name in case.get("wanted", {}).get("refused", ()) if str(root / name) not in str(error)]
            if written or unnamed:
                return [failed(f"wrote {written}, the error does not name {unnamed}: {error}")]
        else:
            return [failed("was not refused")] if is_refused else list(same_table(folder, "expected.", root))
    rule = case.get("deviation")
    return [deviates(rule)] * max(1, len(list(folder.glob("expected.*")))) if rule else [PASSED]

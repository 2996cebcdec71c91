"""MileBench: normalisation, judging, ROUGE-L and whole files. Prompts, sheets and generation: ``milebench_prompts``."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.cli import milebench
from lmms_eval.errors import DataError
from lmms_eval.tasks.milebench.collection import collect, write_collection
from lmms_eval.tasks.milebench.evaluation import EVAL, SCORES, reported
from lmms_eval.tasks.milebench.scoring import DatasetFacts, SampleScore, image_level, score_sample
from lmms_eval.tasks.milebench.scoring.letters import official_letter
from lmms_eval.tasks.milebench.scoring.normalise import normalise
from lmms_eval.tasks.milebench.scoring.rouge import distinct_word_rouge
from lmms_eval.utils.json_files import read_json
from tests.parity.compare import agree
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, path_adapter

NAMES = {"token": "TextNeedleInAHaystack", "substring": "MMCoQA"}
NO_SENTENCE = "milebench_no_sentence_is_zero"
NO_LIMIT = "milebench_rouge_has_no_length_limit"
REFUSED_RESULTS = {
    "broken_json_reuses_previous": ("milebench_damaged_result_is_an_error", "ActionPrediction/eval.json"),
    "non_numeric_metric": ("milebench_non_numeric_metric_is_an_error", "TQA/eval.json"),
}
"""Cases in which the reference writes a wrong table: our rule, and the file that the error must name."""


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
    if record.get("error") == "ValueError":
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


@line_adapter("milebench/units/file_cases.jsonl")
def check_file_case(vector: Vector) -> Verdict:
    record, name = vector.record, vector.record["dataset"]
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        write(root / "data" / name / f"{name}.json", record["annotation"])
        write(root / "out" / name / "pred.json", record["predictions"])
        words = ["--data-dir", f"{root}/data", "--dataset", name, "--result-dir", f"{root}/out"]
        code = milebench.run(["evaluate", *words])
        files = {file.name: read_json(file) for file in (root / "out" / name).glob("eval*.json")}
    return file_case_verdict(record, code, files)


def file_case_verdict(record: dict[str, Any], code: int, files: dict[str, Any]) -> Verdict:
    ids = [str(prediction["sample_id"]) for prediction in record["predictions"]]
    if record["case"] == "string ids in predictions":  # specification §10, row 12
        is_right = code == 0 and files[EVAL]["Accuracy"] == 1 and [one["id"] for one in files[SCORES]] == ids
        return deviates("milebench_digit_ids_are_accepted") if is_right else failed(f"exit code {code}, {files}")
    if record["result"].get("error") == "ValueError" and record["case"].endswith("33 full stops"):  # §10, row 10
        is_right = code == 0 and files[EVAL]["Rouge-L f"] == 0 and len(files[SCORES]) == len(ids)
        return deviates(NO_SENTENCE) if is_right else failed(f"exit code {code}, {files}")
    if "error" in record["result"]:
        return verdict(code != 0 and not files, (code, files))
    wanted = record["result"]
    is_right = code == 0 and agree(wanted["eval"], files[EVAL]) and wanted["eval_score"] == files[SCORES]
    return verdict(is_right, (code, files))


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
        write_collection(collect(root, order), root)
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
    case = read_json(folder / "case.json")
    rule, file = REFUSED_RESULTS.get(folder.name, ("", EVAL))
    with tempfile.TemporaryDirectory() as temporary:
        root = copied(folder / "outputs", Path(temporary) / "outputs")
        try:
            write_collection(collect(root, case["models"]), root)
        except DataError as error:
            if file not in str(error):
                return [failed(f"the error does not name {file}: {error}")]
            return [deviates(rule)] * len(list(folder.glob("expected.*"))) if rule else [verdict(case["exit_code"], "")]
        if rule or case["exit_code"]:
            return [failed("was not refused")]
        return list(same_table(folder, "expected.", root))

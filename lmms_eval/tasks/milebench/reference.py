"""Annotation files for the stand-alone evaluator: the samples that predictions are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.milebench.scoring.model import DatasetFacts
from lmms_eval.tasks.milebench.submission import sample_number

ADVERSARIAL, ADVERSARIAL_VARIANT = "-adv", "adversarial"


class Reference(Struct, frozen=True):
    """The part of an annotation file that scoring needs."""

    where: str
    """The file, for messages."""
    facts: DatasetFacts
    samples: Mapping[int, Mapping[str, Any]]
    """Samples by number, in the order of the file."""
    variant: str = ""
    """``adversarial``, or empty."""


def annotation_path(data_dir: Path, dataset: str, is_adversarial: bool = False) -> Path:
    """``DIR/NAME/NAME.json``, or ``NAME-adv.json``."""
    return data_dir / dataset / f"{dataset}{ADVERSARIAL if is_adversarial else ''}.json"


def load_reference(data_dir: Path, dataset: str, is_adversarial: bool = False) -> Reference:
    """Read an annotation file; see :func:`parse_reference`."""
    path = annotation_path(data_dir, dataset, is_adversarial)
    if not path.is_file():
        raise DataError(f"there is no annotation {path}; --data-dir names the folder that holds {dataset}/{path.name}")
    found = parse_reference(read_json(path), dataset, str(path))
    return replace(found, variant=ADVERSARIAL_VARIANT) if is_adversarial else found


def parse_reference(content: Any, dataset: str, where: str) -> Reference:
    """Check an annotation and index its samples.

    Raises:
        DataError: it has no ``meta_data`` or ``data``, the question type is unknown, a ``sample_id`` is repeated or no
            number, or a sample lacks a key that evaluation needs.
    """
    if not isinstance(content, Mapping) or not isinstance(content.get("data"), list):
        raise DataError(f"{where} is no annotation: it must hold an object with meta_data and the list data")
    meta = content.get("meta_data")
    facts = DatasetFacts(dataset, meta.get("question_type") if isinstance(meta, Mapping) else None)
    try:
        is_choice = facts.rule == "choice"
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    samples: dict[int, Mapping[str, Any]] = {}
    for position, sample in enumerate(content["data"]):
        number = sample_number(sample.get("sample_id")) if isinstance(sample, Mapping) else None
        if number is None or number in samples:
            problem = "no object with a sample_id that is a number" if number is None else f"a second sample {number}"
            raise DataError(f"{where}: entry {position} of data is {problem}")
        given = sample.get("task_instance")
        instance = given if isinstance(given, Mapping) else {}
        has = {
            "list task_instance.images_path": isinstance(instance.get("images_path"), list),
            "image_quantity_level": "image_quantity_level" in sample,
            "list task_instance.choice_list": not is_choice or isinstance(instance.get("choice_list"), list),
        }
        if missing := [key for key, is_there in has.items() if not is_there]:
            raise DataError(f"{where}: sample {number} has no {missing[0]}")
        samples[number] = sample
    return Reference(where, facts, samples)

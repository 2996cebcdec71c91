"""IFEval: instructions about the form of a text, each checked by a rule."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval.api.outcome import Estimate
from lmms_eval.errors import ItemError
from lmms_eval.tasks._task_utils.estimates import ratio
from lmms_eval.tasks._task_utils.linguistic import data_identity
from lmms_eval.tasks._task_utils.question import Doc, Settings
from lmms_eval.tasks._task_utils.scoring_data import depends_on
from lmms_eval.tasks.ifeval.instructions import RULES, Check, Instruction


def _nltk_data(settings: Settings) -> str | None:
    return (settings or {}).get("nltk_data")


def doc_to_target(doc: Doc) -> str:  # noqa: ARG001 - interface
    """Return an empty text: no text is the right one."""
    return ""


@depends_on(lambda settings: data_identity(_nltk_data(settings)))
def process_results(
    doc: Doc, results: Sequence[str], lmms_eval_specific_kwargs: Settings = None
) -> dict[str, bool | list[bool]]:
    """Return which instructions the answer follows, unchanged (strict) and in one of eight readings (loose).

    Raises:
        ItemError: an instruction that is not known, or lacks what it must say.
        NotEvaluated: a package or data that an instruction needs is not installed.
    """
    checks = [_check(doc, place, _nltk_data(lmms_eval_specific_kwargs)) for place in range(len(_names(doc)))]
    answer = results[0]
    strict = [_follows(check, answer) for check in checks]
    others = [reading for reading in readings(answer) if reading != answer]
    loose = [
        held or any(_follows(check, reading) for reading in others) for held, check in zip(strict, checks, strict=True)
    ]
    return {
        "prompt_level_strict_acc": all(strict),
        "inst_level_strict_acc": strict,
        "prompt_level_loose_acc": all(loose),
        "inst_level_loose_acc": loose,
    }


def readings(answer: str) -> list[str]:
    """Return the answer without its first line, its last one, both or neither; each also without asterisks."""
    lines = answer.split("\n")
    cut = (answer, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])))
    return list(dict.fromkeys(text for one in cut for text in (one, one.replace("*", ""))))


def over_instructions(results: Sequence[Sequence[bool]]) -> Estimate:
    """Return the share of instructions that are followed, over those of all documents."""
    return ratio([sum(followed) for followed in results], [len(followed) for followed in results])


def _follows(check: Check, text: str) -> bool:
    return bool(text.strip()) and check(text)


def _names(doc: Doc) -> Sequence[str]:
    names: Sequence[str] = doc["instruction_id_list"]
    if len(names) != len(doc["kwargs"]):
        raise ItemError(
            f"ifeval: column 'kwargs' holds {len(doc['kwargs'])} entries for {len(names)} in 'instruction_id_list'"
        )
    return names


def _check(doc: Doc, place: int, nltk_data: str | None) -> Check:
    name = doc["instruction_id_list"][place]
    if name not in RULES:
        raise ItemError(f"ifeval: column 'instruction_id_list' holds {name!r}, which is not one of {', '.join(RULES)}")
    stated = {key: value for key, value in (doc["kwargs"][place] or {}).items() if value}
    return RULES[name](Instruction(name, stated, nltk_data))

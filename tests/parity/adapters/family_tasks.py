"""Vectors of what task folders of the family import: filters, speech, the settings' record, media."""

from __future__ import annotations

import importlib.util
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest import mock

from lmms_eval.api.filter import Filter
from lmms_eval.filters import extraction, transformation
from lmms_eval.loggers.evaluation_tracker import GeneralConfigTracker
from lmms_eval.tasks import asr_wer_utils
from lmms_eval.tasks._task_utils.media_resolver import resolve_media_reference
from tests.parity.compare import agree, decode
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, pending

Call = Callable[..., Any]
FOLDER = "<DIR>"
REPLACED: dict[tuple[str, str], tuple[str, Any]] = {
    ("RegexFilter", "(a?)(b?)"): ("family_filter_without_a_group_falls_back", [["[invalid]"]]),
    ("SimpleMultiChoiceRegexFilter", "green"): ("family_option_texts_are_cleaned", ["C"]),
    ("SimpleMultiChoiceRegexFilter", "5%"): ("family_option_texts_are_cleaned", ["A"]),
    ("resolve_media_reference", "a.b"): ("family_dotted_names_have_extensions", "<DIR>/hf/ds/a.b.mp4"),
    ("GeneralConfigTracker._get_model_name", "{'pretrained': 'x'}"): ("family_arguments_may_be_a_mapping", "x"),
}
"""Records without a mark that show a fault (family names, head): rule, and the value in the recorded one's place."""


def _attributes(name: str, **kwargs: Any) -> dict[str, Any]:
    made = getattr(transformation if name == "MapFilter" else extraction, name)(**kwargs)
    names = ("regex_pattern", "group_select", "fallback", "ignore_case", "ignore_punctuation", "regexes_to_ignore")
    found = {key: getattr(made, key) for key in (*names, "mapping_dict", "default_value") if hasattr(made, key)}
    return found | ({"regex.pattern": made.regex.pattern} if hasattr(made, "regex") else {})


def _map(resps: list[Any], **kwargs: Any) -> list[Any]:
    return transformation.MapFilter(**kwargs).apply(resps, [{}] * len(resps))


def _simple(resps: list[Any], questions: list[str], **kwargs: Any) -> list[Any]:
    docs = [{"question": question} for question in questions]
    return extraction.SimpleMultiChoiceRegexFilter(**kwargs).apply(resps, docs)


def _find_match(pattern: str, text: str, *converted: Any, **kwargs: Any) -> Any:
    return extraction.ExtendedRegexFilter(**kwargs).find_match(re.compile(pattern), text, *converted)


def _experiment(*args: Any) -> dict[str, Any]:
    tracker = GeneralConfigTracker()
    tracker.log_experiment_args(*args)
    names = (
        "model_source", "model_name", "model_name_sanitized", "system_instruction", "system_instruction_sha",
        "fewshot_as_multiturn", "chat_template", "chat_template_sha",
    )  # fmt: skip
    times = (tracker.start_time, tracker.end_time, tracker.total_evaluation_time_seconds)
    return {name: getattr(tracker, name) for name in names} | {"types": [type(one).__name__ for one in times]}


def _resolve(files: list[str], reference: Any, env: Mapping[str, str] | None = None, **kwargs: Any) -> Any:
    with tempfile.TemporaryDirectory() as name:
        for file in files:
            path = Path(name, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        values = {"HF_HOME": f"{name}/hf"} | {key: f"{name}/{value}" for key, value in (env or {}).items()}
        text = reference.replace(FOLDER, name) if isinstance(reference, str) else reference
        with mock.patch.dict("os.environ", values, clear=True), chdir(name):
            found = resolve_media_reference(text, **kwargs)
    return found.replace(name, FOLDER) if isinstance(found, str) else found


FUNCTIONS: dict[str, Call] = {
    "ExtendedRegexFilter.filter_ignores": lambda text, **kw: extraction.ExtendedRegexFilter(**kw).filter_ignores(text),
    "ExtendedRegexFilter.find_match": _find_match,
    "Filter": lambda args, kwargs, resps: Filter(*args, **kwargs).apply(resps, [{}] * len(resps)),
    "GeneralConfigTracker._get_model_name": GeneralConfigTracker._get_model_name,
    "MapFilter": _map,
    "RegexFilter": lambda resps, **kwargs: extraction.RegexFilter(**kwargs).apply(resps, [{}] * len(resps)),
    "SimpleMultiChoiceRegexFilter": _simple,
    "attributes": _attributes,
    "compute_wer": asr_wer_utils.compute_wer,
    "log_experiment_args": _experiment,
    "remove_punctuation": asr_wer_utils.EvaluationTokenizer.remove_punctuation,
    "remove_sp": asr_wer_utils.remove_sp,
    "resolve_media_reference": _resolve,
    "tokenize": lambda text, **kwargs: asr_wer_utils.EvaluationTokenizer(**kwargs).tokenize(text),
    "zhconv_convert": asr_wer_utils.zhconv_convert,
}
NAMED: dict[str, Call] = {
    "dash_to_space": lambda text: text.replace("-", " "),
    "reverse": lambda text: text[::-1],
    "strip_digits": lambda text: re.sub(r"\d", "", text),
    "upper": str.upper,
    "zhconv": asr_wer_utils.zhconv_convert,
}
"""Functions that records pass as ``{"$function": NAME}``."""
RAISED = {"error": re.error} | {
    kind.__name__: kind for kind in (AssertionError, IndexError, TypeError, ZeroDivisionError)
}


def _is_function(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"$function"}


def _marker(record: Mapping[str, Any]) -> str:
    """The argument by which a record of ``REPLACED`` is known."""
    if record["function"] == "RegexFilter":
        return str(record["kwargs"].get("regex_pattern"))
    if record["function"] == "SimpleMultiChoiceRegexFilter":
        return str(record["args"][0][0][0])
    return str(record["args"][-1])


def _call(record: Mapping[str, Any]) -> Any:
    kwargs = {key: NAMED[value["$function"]] if _is_function(value) else decode(value)
              for key, value in record["kwargs"].items()}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a lone bracket in a class of marks
        return FUNCTIONS[record["function"]](*decode(record["args"]), **kwargs)


def _uses_zhconv(record: Mapping[str, Any]) -> bool:
    return record["function"] == "zhconv_convert" or record["kwargs"].get("yue_converter") is not None


@line_adapter(*(f"family_functions/{stem}.jsonl" for stem in ("asr", "config_tracker", "filters", "media_resolver")))
@keyed("function", "args*", "kwargs*", "expected*", "raises", "defect")
def judge(vector: Vector) -> Verdict:
    """Call our function of that name and compare; an error must be of the recorded class."""
    record = vector.record
    if _uses_zhconv(record) and importlib.util.find_spec("zhconv") is None:
        return pending("zhconv is not installed")
    replaced = REPLACED.get((record["function"], _marker(record)))
    if "raises" in record and not record.get("defect") and replaced is None:
        try:
            found = _call(record)
        except RAISED[record["raises"]]:
            return PASSED
        return failed(f"{found!r} instead of {record['raises']}")
    found = _call(record)
    if replaced is not None:
        return deviates(replaced[0]) if agree(replaced[1], found) else failed(f"{found!r} instead of {replaced[1]!r}")
    wanted = decode(record["wanted"] if record.get("defect") else record["expected"])
    if not agree(wanted, found):
        return failed(f"{found!r} instead of {wanted!r}")
    return deviates("family_empty_first_reference") if record.get("defect") else PASSED

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
from lmms_eval.filters import extraction, patterns
from lmms_eval.loggers.evaluation_tracker import GeneralConfigTracker
from lmms_eval.tasks import asr_wer_utils
from lmms_eval.tasks._task_utils.media_resolver import resolve_media_reference
from tests.parity.compare import agree, decode
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter, pending

Call = Callable[..., Any]
FOLDER = "<DIR>"
NAME_KEYS = ("peft", "delta", "pretrained", "model", "model_version", "model_name", "model_id", "path", "engine")
"""Keys of a model's name, in the order in which they are tried (family names §2.6)."""


def _attributes(name: str, **kwargs: Any) -> dict[str, Any]:
    made = getattr(patterns if name == "MapFilter" else extraction, name)(**kwargs)
    names = ("regex_pattern", "group_select", "fallback", "ignore_case", "ignore_punctuation", "regexes_to_ignore")
    found = {key: getattr(made, key) for key in (*names, "mapping_dict", "default_value") if hasattr(made, key)}
    return found | ({"regex.pattern": made.regex.pattern} if hasattr(made, "regex") else {})


def _map(resps: list[Any], **kwargs: Any) -> list[Any]:
    return patterns.MapFilter(**kwargs).apply(resps, [{}] * len(resps))


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


def _call(record: Mapping[str, Any]) -> Any:
    kwargs = {key: NAMED[value["$function"]] if _is_function(value) else decode(value)
              for key, value in record["kwargs"].items()}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # a lone bracket in a class of marks
        return FUNCTIONS[record["function"]](*decode(record["args"]), **kwargs)


def _filtered(record: Mapping[str, Any]) -> tuple[str, Any] | None:
    """A match without the wanted group, on which the reference fails, falls back (family names §7)."""
    if record.get("raises") != "IndexError":
        return None
    kwargs = record["kwargs"]
    pattern = re.compile(kwargs.get("regex_pattern", r"#### (\-?[0-9\.\,]+)"))
    place, fallback = kwargs.get("group_select", 0), kwargs.get("fallback", "[invalid]")

    def one(answer: str) -> str:
        found = pattern.findall(answer)
        match = found[place] if -len(found) <= place < len(found) else ""
        groups = [match] if isinstance(match, str) else [group for group in match if group]
        return groups[0].strip() if groups and groups[0] else fallback

    return "family_filter_without_a_group_falls_back", [[one(answer) for answer in row] for row in record["args"][0]]


def _lettered(record: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Option texts with punctuation, which the reference cannot find, are cleaned as answers are (family names §7)."""
    answers, questions = record["args"]
    if not all(answers):
        return None  # the reference fails, and so do we
    pairs = [(row[0], question) for row, question in zip(answers, questions, strict=True)]
    if record.get("expected") != [_letter(*pair, str) for pair in pairs]:
        return None
    return "family_option_texts_are_cleaned", [_letter(*pair, _words) for pair in pairs]


def _words(text: str) -> str:
    return re.sub(r"[^\w\s]", "", text).strip()


def _letter(answer: str, question: str, cleaned: Callable[[str], str]) -> str:
    texts = [cleaned(text.strip()) for text in re.findall(r"\b[A-Z]\.\s+([^\n]*)", question)]
    options = {text: chr(ord("A") + place) for place, text in enumerate(texts) if text}
    found = re.search("|".join(map(re.escape, options)), _words(answer)) if options else None
    return options[found[0]] if found else _words(answer)


def _dotted(record: Mapping[str, Any]) -> tuple[str, Any] | None:
    """A name whose end the reference takes for its extension; the file has a further one (family names §2.3)."""
    files, reference = record["args"][:2]
    if not isinstance(reference, str) or record.get("expected") != reference or "." not in Path(reference).name:
        return None
    named = [file for file in files if Path(file).stem == Path(reference).name]
    return ("family_dotted_names_have_extensions", f"{FOLDER}/{named[0]}") if len(named) == 1 else None


def _named(record: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Arguments as a mapping, in whose keys the reference looks for ``KEY=`` (family names §2.6)."""
    (arguments,) = record["args"]
    if not isinstance(arguments, Mapping):
        return None
    return "family_arguments_may_be_a_mapping", next((arguments[key] for key in NAME_KEYS if key in arguments), "")


MENDED: dict[str, Callable[[Mapping[str, Any]], tuple[str, Any] | None]] = {
    "GeneralConfigTracker._get_model_name": _named,
    "RegexFilter": _filtered,
    "SimpleMultiChoiceRegexFilter": _lettered,
    "resolve_media_reference": _dotted,
}
"""Functions whose faults carry no mark (family names, head): of a record that meets one, the rule and the value that is
wanted."""


def _mended(record: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Rule and wanted value where they differ from what is recorded."""
    find = MENDED.get(record["function"])
    found = find(record) if find is not None and not record.get("defect") else None
    return None if found is None or agree(record.get("expected"), found[1]) else found


def _uses_zhconv(record: Mapping[str, Any]) -> bool:
    return record["function"] == "zhconv_convert" or record["kwargs"].get("yue_converter") is not None


@line_adapter(*(f"family_functions/{stem}.jsonl" for stem in ("asr", "config_tracker", "filters", "media_resolver")))
@keyed("function", "args*", "kwargs*", "expected*", "raises", "defect")
def judge(vector: Vector) -> Verdict:
    """Call our function of that name and compare; an error must be of the recorded class."""
    record = vector.record
    if _uses_zhconv(record) and importlib.util.find_spec("zhconv") is None:
        return pending("zhconv is not installed")
    replaced = _mended(record)
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

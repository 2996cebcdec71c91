"""Vectors of the helpers that task folders of the family import (``family_functions``)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from lmms_eval import utils
from lmms_eval.api import metrics
from lmms_eval.tasks._task_utils import (
    default_template_yaml,
    mcq_extract,
    mmmu_mcq_utils,
    point_format,
    video_loader,
    vqa_eval_metric,
)
from tests.parity.compare import agree, decode, plain
from tests.parity.keys import keyed
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

Call = Callable[..., Any]
DEFECT_RULE = "family_defect_is_mended"
HOMES = (utils, metrics, mcq_extract, mmmu_mcq_utils)
VARIABLES = {"XROOT": "/data/x"}
"""Set for all calls; ``NOPE_UNSET`` is not."""


def _template(content: str | None) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        if content is not None:
            (Path(folder) / "_default_template_yaml").write_text(content, encoding="utf-8")
        return default_template_yaml.load_default_template_yaml(f"{folder}/utils.py")


def _video(files: Sequence[str], name: str, suffix: str = "mp4") -> str:
    with tempfile.TemporaryDirectory() as folder:
        for file in (Path(folder) / name for name in files):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        return os.path.relpath(video_loader.get_video(folder, name, suffix), folder)


def _cache_dir(config: Mapping[str, Any], sub_dir: str = "videos", home: str | None = "/hf") -> str:
    """The folder, in the user's home with ``~`` as recorded."""
    with mock.patch.dict(os.environ):
        os.environ.pop("HF_HOME", None)
        if home is not None:
            os.environ["HF_HOME"] = home
        found = video_loader.get_cache_dir(config, sub_dir)
    return found if home is not None else found.replace(os.path.expanduser("~"), "~", 1)


def _points(text: str, width: float, height: float) -> Any:
    return point_format.parse_point2d(text, width, height).tolist()


def _iterated(count: int, *args: Any) -> list[int]:
    return list(utils.create_iterator(range(count), *args))


ADAPTED: dict[str, Call] = {
    "create_iterator": _iterated,
    "get_cache_dir": _cache_dir,
    "get_video": _video,
    "load_default_template_yaml": _template,
    "parse_point2d": _points,
}


def _function(name: str) -> Call:
    if name in ADAPTED:
        return ADAPTED[name]
    processor, _, method = name.partition(".")
    if processor == "EvalAIAnswerProcessor":
        found = vqa_eval_metric.EvalAIAnswerProcessor()
        return getattr(found, method) if method else found
    return next(getattr(home, name) for home in HOMES if hasattr(home, name))


def _drawn(call: Callable[[], Any], members: Sequence[Any]) -> Verdict:
    drawn = [call() for _ in range(3)]
    if drawn[0] not in members or drawn.count(drawn[0]) < len(drawn):
        return failed(f"{drawn!r}: not one of {members!r}, or not the same each time")
    return PASSED


@line_adapter(
    *(
        f"family_functions/{stem}.jsonl"
        for stem in ("mcq", "metrics", "mmmu_mcq", "points", "template", "utils", "video_loader", "vqa")
    )
)
@keyed("function", "args*", "kwargs*", "expected*", "raises", "defect", "wanted")
def judge(vector: Vector) -> Verdict:
    """Call our function of that name; of a defect the wanted value counts, and an error by the name of its class."""
    record = vector.record
    function, args, kwargs = _function(record["function"]), decode(record["args"]), decode(record["kwargs"])
    expected = record["wanted"] if record.get("defect") else record.get("expected")
    with mock.patch.dict(os.environ, VARIABLES):
        if isinstance(expected, Mapping) and set(expected) == {"$one_of"}:
            return _drawn(lambda: function(*args, **kwargs), expected["$one_of"])
        try:
            found = plain(function(*args, **kwargs))
        except Exception as error:  # the class decides, whatever it is
            if "raises" in record and not record.get("defect"):
                names = [each.__name__ for each in type(error).__mro__]
                return PASSED if record["raises"] in names else failed(f"{error!r} instead of {record['raises']}")
            raise
    if "raises" in record and not record.get("defect"):
        return failed(f"{found!r} instead of {record['raises']}")
    if not agree(decode(expected), found):
        return failed(f"{found!r} instead of {expected!r}")
    return deviates(DEFECT_RULE) if record.get("defect") else PASSED

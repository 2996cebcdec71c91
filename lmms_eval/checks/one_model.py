"""The steps of the check of one model: its class, its arguments, and an answer to a text and to a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from lmms_eval.api.model import Model, lmms
from lmms_eval.api.task import Task, TaskOptions
from lmms_eval.checks.findings import Finding
from lmms_eval.checks.network import is_this_machine
from lmms_eval.checks.reasons import NO_NETWORK, finding, of_reason
from lmms_eval.checks.trial import first_reason, tried
from lmms_eval.models.building import BuildOptions
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.resolved import ResolvedModel
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.selection import select_tasks
from lmms_eval.tasks.yaml.included import include

_ASKED = {"text": ("Which colour has the sky? Answer with one word.", None), "picture": ("Describe it.", "p.png")}
_TASK = """\
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: rows.jsonl}}}}
test_split: test
doc_to_text: question
doc_to_target: answer
generation_kwargs: {{max_new_tokens: 8}}
metric_list: [{{metric: bypass, aggregation: bypass}}]
"""


def check_model(spec: Mapping[str, Any], begin: Callable[[str], None]) -> list[Finding]:
    """Look a model up, build it, and ask it a question of text and one with a picture.

    Args:
        spec: ``name``, ``arguments`` (``--model_args``), ``plugins``, ``force_simple``, ``batch_size`` and ``device``.
        begin: is told the step.
    """
    begin("import")
    registry = ModelRegistry(spec["plugins"])
    try:
        for folder in registry.plugin_task_folders():
            include(folder)
        resolved = registry.resolve(spec["name"], spec["force_simple"])
        cls = resolved.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the model's module runs here
        return [finding("import", error)]
    found = [Finding("import")]
    begin("arguments")
    try:
        options = BuildOptions(
            batch_size=spec["batch_size"], device=spec["device"], force_simple=spec["force_simple"]
        )  # fmt: skip
        model = registry.build(spec["name"], spec["arguments"], options)[0]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - so does its constructor
        return [*found, finding("arguments", error)]
    found.append(Finding("arguments"))
    with closing(model):
        asked = TaskOptions(
            model_name=spec["name"], model_id=resolved.manifest.model_id, chat=_is_chat(resolved),
            legacy=issubclass(cls, lmms),
        )  # fmt: skip
        return [*found, *_answers(model, asked, begin)]


def _is_chat(resolved: ResolvedModel) -> bool:
    return resolved.kind == "chat"


def _answers(model: Model, options: TaskOptions, begin: Callable[[str], None]) -> Iterator[Finding]:
    address = model.identity().get("base_url")
    if isinstance(address, str) and not is_this_machine(urlsplit(address).hostname or ""):
        text = f"it asks {urlsplit(address).hostname}: an evaluation with --limit 1 tells whether it answers"
        yield Finding("text", "skipped", NO_NETWORK, text, text)
        return
    for step in _ASKED:
        begin(step)
        with _question(step, options) as task:
            try:
                (result,) = tried([task], model, 1)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the model's own code runs here
                yield finding(step, error)
                return
        if result.outcome.failed:
            reason = first_reason(result)
            yield of_reason(step, f"the model does not answer: {reason}")
            return
        yield Finding(step)


@contextmanager
def _question(step: str, options: TaskOptions) -> Iterator[Task]:
    """A loaded task of one document."""
    text, picture = _ASKED[step]
    with TemporaryDirectory(prefix="lmms-eval-check-") as made:
        folder = Path(made)
        row = {"question": text, "answer": "-"}
        content = _TASK.format(name=f"check_{step}")
        if picture:
            from PIL import Image

            Image.new("RGB", (64, 48), "red").save(folder / picture)
            row["pictures"] = [str(folder / picture)]  # type: ignore[assignment]  # a list beside texts
            content += "doc_to_visual: pictures\n"
        (folder / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
        file = folder / "check.yaml"
        file.write_text(content, encoding="utf-8")
        (task,) = select_tasks([str(file)], Catalogue(include_defaults=False), options).tasks
        task.load()
        yield task

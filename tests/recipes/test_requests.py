"""The requests of every shipped recipe and each of its variants, against the recorded ones in ``golden/``.

``python -m tests.recipes.test_requests`` records them again: read the difference before it is committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from lmms_eval.config import build_config
from lmms_eval.evaluation.recipe import command_line
from lmms_eval.models.openai.model import OpenAI
from lmms_eval.recipes.applying import applied, options_with
from lmms_eval.recipes.recipe import TaskRecipe, names, read
from lmms_eval.tasks.selection import with_options
from lmms_eval.tasks.yaml.task import YamlTask
from tests.recipes.kit import TASKS, tasks_of, write_data

GOLDEN = Path(__file__).parent / "golden"
LOOPBACK = "http://127.0.0.1:9/v1"
_ARGUMENTS = {"model": "m", "base_url": LOOPBACK, "api_key": "EMPTY", "image_format": "JPEG", "max_frames_num": 3}


def shown(part: Mapping[str, Any]) -> Any:
    """A part of a message, a picture as its colour and size."""
    if part["type"] == "text":
        return part["text"]
    import base64
    import io

    from PIL import Image

    data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as opened:
        red, _, blue = opened.convert("RGB").getpixel((0, 0))  # type: ignore[misc]
        colour = "red" if red > 200 else "blue" if blue > 200 else "frame"
        return f"<{colour} {opened.width}x{opened.height}>"


def requests_of(task: YamlTask, recipe: TaskRecipe, model: OpenAI) -> list[dict[str, Any]]:
    """What is sent for each document of a task, apart from the model's name; seeds without those of the documents."""
    given = command_line(build_config({"model": "openai", "tasks": task.name}, {}))
    one = applied(task.name, recipe, given)
    asked = with_options(task, options_with(task, one, given))
    found = []
    for doc_id in range(len(asked)):
        for repeat in range(asked.repeats):
            (request,) = asked.exchange(doc_id, repeat).open()
            body = model.builder.body(request)
            messages = [[turn["role"], *map(shown, turn["content"])] for turn in body.pop("messages")]
            del body["model"]
            tiles = {
                key: value for key, value in (request.media.stated if request.media else {}).items() if "tile" in key
            }
            found.append({"messages": messages, "options": body, **({"tiles": tiles} if tiles else {})})
    return found


def recorded(name: str, variant: str, tasks: Mapping[str, YamlTask], model: OpenAI) -> dict[str, Any]:
    """All requests of one recipe, by task; a task of which a variant states the same as the first one is left out."""
    first, own = read(name), read(name, variant)
    found = {}
    for task in tasks.values():
        is_first, stated = variant == first.variant, own.task(task.name)
        if stated is not None and (is_first or stated.values != first.task(task.name).values):  # type: ignore[union-attr]
            found[task.name] = requests_of(task, stated, model)
    return found


def file_of(name: str) -> Path:
    return GOLDEN / f"{name}.json"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, YamlTask]:
    return loaded(tmp_path_factory.mktemp("data"))


def loaded(root: Path) -> dict[str, YamlTask]:
    found = {task.name: task for task in tasks_of(TASKS, write_data(root))}
    for task in found.values():
        task.load()
    return found


@pytest.mark.parametrize("name", names())
def test_requests_are_the_recorded_ones(name: str, tasks: dict[str, YamlTask]) -> None:
    model = OpenAI(**_ARGUMENTS)
    made = {variant: recorded(name, variant, tasks, model) for variant in read(name).variants}
    assert made == json.loads(file_of(name).read_text("utf-8"))


def test_every_file_is_of_a_recipe() -> None:
    assert {file.stem for file in GOLDEN.glob("*.json")} == set(names())


def test_the_fingerprint_follows_what_changes_requests(tasks: dict[str, YamlTask]) -> None:
    def key(name: str, variant: str = "") -> str:
        task, given = tasks["mmmu_val"], command_line(build_config({"model": "openai", "tasks": "mmmu_val"}, {}))
        recipe = read(name, variant).task(task.name)
        assert recipe is not None
        return str(
            with_options(task, options_with(task, applied(task.name, recipe, given), given)).fingerprint()["config"]
        )

    script = key("qwen3-vl-instruct@qwen-evaluation")
    assert script == key("qwen3-vl-instruct@qwen-evaluation", "report")  # it differs for videos alone
    assert (
        len({script, key("qwen3-vl-instruct@qwen-evaluation", "cot"), tasks["mmmu_val"].fingerprint()["config"]}) == 3
    )


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        tasks, model = loaded(Path(folder)), OpenAI(**_ARGUMENTS)
        for name in names():
            made = {variant: recorded(name, variant, tasks, model) for variant in read(name).variants}
            file_of(name).write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

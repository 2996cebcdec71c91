"""Tasks of two rounds with a picture between them (``generate_visual_cot``), through every kind of model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.api.instance import Instance
from lmms_eval.api.interleaved import InterleavedText, generated_image
from lmms_eval.api.model import Model, RequestStream, lmms
from lmms_eval.api.request import GeneratedImage, Request, RequestKind, Response
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import ModelError, TaskError
from lmms_eval.evaluation.run import run
from lmms_eval.media import digest
from lmms_eval.models.text_to_image.illustrated import IllustratedModel
from lmms_eval.tasks.yaml.exchanges import DRAWING_PROMPT, stages
from tests.cases import for_each
from tests.evaluation.kit import Told, config, inputs_of, run_folders
from tests.models.text_to_image.test_illustrated import Painter
from tests.painting import png
from tests.servers.stub import StubServer
from tests.tasks.kit import Function, converse, loaded, turns_of, write_rows, write_yaml

TAGGED = "[GEN_PROMPT] draw: {question} [/GEN_PROMPT]\n[QUESTION] How many? [/QUESTION]"
CODE = """
from PIL import Image

def pictures(doc):
    if doc["answer"] == "white":
        raise OSError("no picture of snow")
    return [Image.new("RGB", (8, 8), (doc["label"], 9, 9)), Image.new("RGB", (4, 4))]

def context(doc):
    return "[GEN_PROMPT] draw: {question} [/GEN_PROMPT]\\n[QUESTION] " + doc["question"] + "? [/QUESTION]"
"""
KEYS: dict[str, Any] = {
    "output_type": "generate_visual_cot",
    "doc_to_visual": Function("utils.pictures"),
    "doc_to_text": Function("utils.context"),
    "generation_kwargs": {"visual_cot": True, "max_new_tokens": 9},
}
PICTURES = [generated_image(png(7)), generated_image(png(8))]


def drawn(request: Request) -> Response:
    """Two pictures for a prompt that asks for one, else the answer that is right."""
    if request.round == 0:
        return Response.interleaved(request.id, ["first ", *PICTURES])
    return Response(request.id, text="green ")


def test_the_first_picture_is_asked_about_and_all_are_kept(tmp_path: Path) -> None:
    task = loaded(tmp_path, KEYS, CODE)
    answer, (first, second) = converse(task, 1, drawn)
    assert turns_of(first) == [("user", ["image", "draw: grass colour?"])]
    assert turns_of(second) == [("user", ["image", "image", "grass colour?"])]
    _, shown = second.build_messages().messages[0].content[:2]
    assert digest(shown.url) == PICTURES[0].sha256  # type: ignore[union-attr]
    assert first.generation == {"max_new_tokens": 9, "visual_cot": True}
    assert second.generation == {"max_new_tokens": 9}
    assert (first.kind, second.kind) == ("generate_until", "generate_until")
    assert answer.value == "green " and answer.parts == (*PICTURES, "green ")
    assert answer.input.startswith("[GEN_PROMPT]")
    assert task.score(1, [answer]).scores[0].metrics == {"exact_match": 1.0}


def test_without_a_picture_the_first_text_is_the_answer(tmp_path: Path) -> None:
    answer, asked = converse(loaded(tmp_path, KEYS, CODE), 1, lambda request: "only text")
    assert answer.value == "only text" and len(asked) == 1
    empty, _ = converse(loaded(tmp_path, KEYS, CODE), 1, lambda request: Response(request.id, text=None))
    assert empty.value == ""


def test_pictures_of_the_last_answer_stay_behind_it(tmp_path: Path) -> None:
    def twice(request: Request) -> Response:
        return Response.interleaved(request.id, ["see", PICTURES[request.round]])

    answer, _ = converse(loaded(tmp_path, KEYS, CODE), 1, twice)
    assert answer.parts == (PICTURES[0], "see", PICTURES[1])


def test_a_picture_that_the_task_cannot_give_is_none(tmp_path: Path) -> None:
    _, asked = converse(loaded(tmp_path, KEYS, CODE), 2, drawn)
    assert [turns_of(request)[0][1] for request in asked] == [["draw: snow colour?"], ["image", "snow colour?"]]


@for_each(
    ("options", "shown"),
    [({}, ["image", "sky colour?"]), ({"bagel_interleaved": {"task_type": "maze"}}, ["image", "image", "sky colour?"])],
)
def test_without_the_option_it_is_one_question(tmp_path: Path, options: dict[str, Any], shown: list[str]) -> None:
    keys = {**KEYS, "doc_to_text": "{{question}}?", "generation_kwargs": {**options, "max_new_tokens": 9}}
    answer, (request,) = converse(loaded(tmp_path, keys, CODE), 0, drawn)
    assert turns_of(request) == [("user", shown)]
    assert "bagel_interleaved" not in request.generation and "visual_cot" not in request.generation
    assert answer.parts == ("first ", *PICTURES)


def test_options_of_the_command_line_are_merged(tmp_path: Path) -> None:
    task = loaded(tmp_path, KEYS, CODE, TaskOptions(gen_kwargs={"max_new_tokens": 3, "temperature": 1}))
    _, (first, _) = converse(task, 0, drawn)
    assert first.generation["max_new_tokens"] == 3 and type(first.generation["temperature"]) is float


def test_there_is_no_default_metric(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="generate_visual_cot has no metric of its own: give metric_list"):
        loaded(tmp_path, {**KEYS, "metric_list": None}, CODE)


@given(st.text(), st.text())
def test_both_prompts_are_read_or_none(first: str, question: str) -> None:
    made = stages(first)
    if "[GEN_PROMPT]" not in first:
        assert made == (DRAWING_PROMPT.replace("{question}", first), first)
    tagged = stages(f"[QUESTION]{question}[/QUESTION][GEN_PROMPT]{{question}}![/GEN_PROMPT]")
    if "[" not in question:
        assert tagged == (f"{question.strip()}!", question.strip())


class Drawing(Model):
    """Draws, then counts the pictures that it is shown."""

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "generate_visual_cot"})

    def __init__(self) -> None:
        self.asked: list[str] = []

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            (request,) = requests
            self.asked.append(request.id)
            pictures = request.payload.extract_media()[0]
            yield drawn(request) if request.round == 0 else Response(request.id, text=f" {len(pictures)}")

    def identity(self) -> dict[str, Any]:
        return {"drawing": 1}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keys = {
        "task": "drawn", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
        "test_split": "test", "doc_to_target": "seen", "metric_list": [{"metric": "exact_match"}], **KEYS,
    }  # fmt: skip
    write_yaml(tmp_path / "tasks/drawn.yaml", keys)
    (tmp_path / "tasks/utils.py").write_text(CODE, encoding="utf-8")
    rows = [
        {"question": "q", "answer": "blue", "label": 1, "seen": "2"},
        {"question": "p", "answer": "white", "label": 0, "seen": "1"},
    ]
    write_rows(tmp_path / "tasks", rows)
    return tmp_path


def samples(out: Path) -> list[dict[str, Any]]:
    path = sorted(out.rglob("*_samples_drawn.jsonl"))[-1]
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for part in (part for row in found for part in row["parts"] if part["type"] == "image"):
        assert (path.parent / part["path"]).is_file()
    return found


def test_a_run_keeps_the_pictures_and_goes_on_after_the_first_round(folder: Path) -> None:
    model = Drawing()
    report = run(config(folder, model="drawing", tasks="drawn", log_samples=True), model)
    assert report.results["results"]["drawn"]["exact_match,none"] == 1.0
    assert sorted(model.asked) == [f"drawn/{doc}/0/{number}/0" for doc in (0, 1) for number in (0, 1)]
    row = samples(folder / "out")[0]
    assert [part["type"] for part in row["parts"]] == ["image", "image", "text"] and row["filtered_resps"] == "2"
    (journal,) = run_folders(folder / "out")[0].glob("responses*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b"drawn/1/0/1/0" not in line))
    for scores in journal.parent.glob("scores*.jsonl"):
        scores.unlink()
    again = Drawing()
    report = run(config(folder, model="drawing", tasks="drawn", log_samples=True, resume=True), again)
    assert again.asked == ["drawn/1/0/1/0"]
    assert report.results["results"]["drawn"]["exact_match,none"] == 1.0
    replayed = run(
        config(
            folder,
            model="replay",
            tasks="drawn",
            model_args=f"path={folder / 'out'}",
            output_path=str(folder / "replayed"),
            log_samples=True,
        )
    )
    assert replayed.results["results"]["drawn"]["exact_match,none"] == 1.0
    assert [part["type"] for part in samples(folder / "replayed")[0]["parts"]] == ["image", "image", "text"]


class Plugin(lmms):
    """Answers as a model of the family, and notes what it got."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[Instance] = []

    def generate_visual_cot(self, requests: list[Instance]) -> list[str]:
        self.got += requests
        return [" 2 " for _ in requests]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        raise AssertionError

    loglikelihood = generate_until_multi_round = generate_until  # type: ignore[assignment]


class ChatPlugin(Plugin):
    is_simple = False


class Without(lmms):
    def generate_until(self, requests: list[Instance]) -> list[str]:
        raise AssertionError

    loglikelihood = generate_until_multi_round = generate_until  # type: ignore[assignment]


def test_a_class_plugin_gets_the_requests_themselves(folder: Path) -> None:
    plugin = Plugin()
    report = run(config(folder, model="plugin", tasks="drawn", gen_kwargs="max_new_tokens=3"), plugin)
    assert report.results["results"]["drawn"]["exact_match,none"] == 0.5
    first = min(plugin.got, key=lambda instance: instance.args[3])
    context, options, doc_to_visual, doc_id, task, split = first.args
    assert (first.request_type, context.split()[0], doc_id, task, split) == (
        "generate_visual_cot", "[GEN_PROMPT]", 0, "drawn", "test"
    )  # fmt: skip
    assert options == {"visual_cot": True, "max_new_tokens": 3, "until": ["\n\n"]}
    assert len(doc_to_visual(plugin.task_dict[task][split][doc_id])) == 2


@pytest.mark.parametrize("model", [ChatPlugin(), Without(), Told(lambda request: pytest.fail("asked"))])
def test_a_model_that_cannot_is_refused_before_anything_is_asked(folder: Path, model: Any) -> None:
    with pytest.raises(ModelError, match=r"\(generate_visual_cot\) needs generate_visual_cot requests.*--t2i"):
        inputs_of(config(folder, model="told", tasks="drawn"), model)


def test_the_base_class_names_the_model() -> None:
    with pytest.raises(NotImplementedError, match=r"Without draws no pictures.*bagel_unig2u"):
        Without().generate_visual_cot([])


class Describing(Told):
    """Describes the picture as it is asked to."""

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            (request,) = requests
            asks = "<image>description</image>" in request.payload.text()
            media: Sequence[Any] = request.payload.extract_media()[0]
            text = "a <image>red square</image>" if asks else f"{len(media)}"
            yield Response(request.id, text=text)


def test_a_model_that_only_writes_has_its_picture_drawn(folder: Path) -> None:
    report = run(config(folder, model="x", tasks="drawn", log_samples=True), IllustratedModel(Describing(), Painter()))
    assert report.results["results"]["drawn"]["exact_match,none"] == 1.0
    assert [part["type"] for part in samples(folder / "out")[0]["parts"]] == ["image", "text"]


def test_a_server_that_sends_pictures_is_shown_its_own(folder: Path) -> None:
    with StubServer(fault="pictures") as server:
        asked = {"model": "openai", "model_args": f"model=m,base_url={server.url}", "tasks": "drawn"}
        assert run(config(folder, log_samples=True, **asked)).exit_code == 0
        assert server.stats()["total"] == 4
    row = samples(folder / "out")[0]
    assert [part["type"] for part in row["parts"]] == ["image", "text", "image", "text"]
    assert len(row["sent_media"]) == 2  # its own picture and the document's, each of them sent


def test_gold_answers_score_full_marks(folder: Path) -> None:
    report = run(config(folder, tasks="drawn"))
    assert report.results["results"]["drawn"]["exact_match,none"] == 1.0


def test_what_functions_get_is_a_text_that_carries_its_pictures(tmp_path: Path) -> None:
    code = f"{CODE}\ndef process(doc, results):\n    assert results[0].images[1]\n"
    code += '    return {"exact_match": float(results == ["green"])}\n'
    task = loaded(tmp_path, {**KEYS, "process_results": Function("utils.process")}, code)
    answer, _ = converse(task, 1, drawn)
    assert isinstance(answer.value, InterleavedText) and isinstance(answer.parts[0], GeneratedImage)
    assert task.score(1, [answer]).scores[0].metrics == {"exact_match": 1.0}

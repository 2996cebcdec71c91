from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lmms_eval.api.model import Model, RequestStream, lmms
from lmms_eval.api.request import Request, RequestKind, Response
from lmms_eval.engine.looks import Sampling
from lmms_eval.errors import UsageError
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.sampling import sampling_of
from lmms_eval.evaluation.writing import RunReport
from tests.cases import for_each
from tests.evaluation import kit
from tests.media.draw import write_video
from tests.servers.stub import StubServer
from tests.tasks.kit import BASE, Function, write_rows, write_yaml

COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200), "white": (250, 250, 250)}
CODE = """
from PIL import Image


def doc_to_visual(doc):
    return [Image.open(doc["picture"]).convert("RGB")]


def doc_to_text(doc):
    lines = "\\n".join(f"{letter}. {option}" for letter, option in zip("ABCD", doc["options"]))
    return f"<image>{doc['question']}\\n{lines}"


def process_results(doc, results):
    return {"acc": float(results[0] == doc["answer"])}
"""
YAML = {
    **BASE,
    "doc_to_text": Function("utils.doc_to_text"),
    "doc_to_visual": Function("utils.doc_to_visual"),
    "process_results": Function("utils.process_results"),
    "choices": {"options": "options", "answer": "answer", "question": "question"},
    "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True, "range": [0, 1]}],
}


def picture_task(tmp: Path, documents: int = 8, **changes: Any) -> Path:
    """Questions for the colour of a picture, whose options stand in a column."""
    folder = tmp / "tasks"
    folder.mkdir(parents=True, exist_ok=True)
    names = list(COLOURS)
    rows = []
    for number in range(documents):
        place = folder / f"{number}.png"
        Image.new("RGB", (8 + number, 6), COLOURS[names[number % 4]]).save(place)
        rows.append(
            {"question": f"colour {number}?", "options": names, "answer": "ABCD"[number % 4], "picture": str(place)}
        )
    write_rows(folder, rows)
    (folder / "utils.py").write_text(CODE)
    write_yaml(folder / "probe.yaml", {key: value for key, value in {**YAML, **changes}.items() if value is not None})
    return folder


class Looker(Model):
    """Names the option whose colour the picture has; without one it says the first."""

    kinds: frozenset[RequestKind] = frozenset({"generate_until"})

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.asked: list[str] = []
        self.seen: dict[str, list[Any]] = {}

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            if len(self.asked) == self.most:
                raise RuntimeError("killed")
            (request,) = requests
            self.asked.append(request.id)
            yield Response(request.id, text=self._answer(request))

    def _answer(self, request: Request) -> str:
        messages = request.build_messages()
        parts = [part for message in messages.messages for part in message.content]
        self.seen[request.id] = [part.text if part.type == "text" else part.url for part in parts]
        pictures = [part.url for part in parts if part.type == "image"]
        names = {value: name for name, value in COLOURS.items()}
        name = names.get(pictures[0].getpixel((0, 0))) if pictures else None
        lines = dict(line.split(". ") for line in messages.text().splitlines() if line[1:2] == ".")
        return next((letter for letter, option in lines.items() if option == name), "A")

    def identity(self) -> dict[str, Any]:
        return {"name": "looker"}


def evaluated(tmp: Path, model: Model | lmms, **over: Any) -> RunReport:
    return run(kit.config(tmp, **{"tasks": "probe", "log_samples": True, "bootstrap_iters": 0, **over}), model)


ALL = "no-media,blank-media,shuffled-media,choices-only"


def test_every_control_asks_the_same_documents_otherwise(tmp_path: Path) -> None:
    picture_task(tmp_path)
    model = Looker()
    report = evaluated(tmp_path, model, ablate=ALL)
    assert report.exit_code == 0
    assert len(model.asked) == len(set(model.asked)) == 5 * 8
    lines = "A. red\nB. green\nC. blue\nD. white"
    assert model.seen["probe/1/0/0/0"][1] == f"<image>colour 1?\n{lines}"
    assert model.seen["probe@no-media/1/0/0/0"] == [f"colour 1?\n{lines}"]
    grey, text = model.seen["probe@blank-media/1/0/0/0"]
    assert (grey.size, grey.getextrema()) == ((9, 6), ((127, 127),) * 3)
    assert text == f"<image>colour 1?\n{lines}"
    shuffled = {number: model.seen[f"probe@shuffled-media/{number}/0/0/0"][0].size[0] - 8 for number in range(8)}
    assert sorted(shuffled.values()) == list(range(8))
    assert all(number != donor for number, donor in shuffled.items())
    assert model.seen["probe@choices-only/1/0/0/0"] == [f"\n{lines}"]
    results = report.results
    assert results["results"]["probe"]["acc,none"] == 1.0
    assert (
        results["results"]["probe@no-media"]["acc,none"] == results["results"]["probe@blank-media"]["acc,none"] == 0.25
    )
    controls = results["controls"]["probe"]
    assert controls["chance"] == {"uniform": 0.25, "majority": 0.25}
    gap = controls["no-media"]["acc,none"]
    assert (gap["score"], gap["plain"], gap["gap"], gap["n"]) == (0.25, 1.0, 0.75, 8)
    assert 0 < gap["interval"]["low"] < 0.75 < gap["interval"]["high"] <= 1
    assert gap["p"] == pytest.approx(2 * 0.5**6)  # McNemar's exact test: six documents differ, one way
    assert gap["interval"]["estimand"] == "generalised accuracy"
    found = results["needs_media"]["probe"]["acc,none"]
    assert found["controls"] == ["no-media", "blank-media", "choices-only"] and found["documents"] == ["0", "4"]
    whole, *cells = found["cells"]  # without a picture the model says A, which is right about two of eight
    assert (whole["by"], whole["answered"], whole["explained"], whole["rest"], whole["rest_score"]) == (
        "",
        8,
        0.25,
        6,
        1.0,
    )
    assert 0 < whole["explained_interval"]["low"] < 0.25 < whole["explained_interval"]["high"] < 1
    assert whole["rest_interval"]["estimand"] == "generalised accuracy" and "lower bound" in found["about_rest"]
    of_a, of_b = (one for one in cells if one["by"] == "answer" and one["value"] in "AB")
    assert (of_a["explained"], of_a["rest"], of_a["rest_score"]) == (1.0, 0, None)
    assert of_a["rest_interval"] == {"low": None, "high": None, "reason": "n = 0"} and of_b["explained"] == 0.0
    assert "- no-media" in report.table
    assert "+0.75" in report.table
    (samples,) = (tmp_path / "out").rglob("*_samples_probe@no-media.jsonl")
    assert [json.loads(line)["target"] for line in samples.read_text().splitlines()] == list("ABCDABCD")


def test_what_cannot_be_told_apart_is_said_in_words(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=2)

    class Blind(Looker):
        def _answer(self, request: Request) -> str:
            return "A"

    report = evaluated(tmp_path, Blind(), ablate="no-media")
    (line,) = (line for line in report.lines if "no clear difference" in line)
    assert line.startswith("probe: without its pictures, videos and sounds 0.5 of 0.5 remain (gap +0 [-")


@pytest.mark.parametrize("most", [3, 10, 17])
def test_a_run_that_was_killed_goes_on_and_asks_nothing_twice(tmp_path: Path, most: int) -> None:
    picture_task(tmp_path)
    first, second = Looker(most), Looker()
    with pytest.raises(Exception, match="killed"):
        evaluated(tmp_path, first, ablate="no-media,shuffled-media")
    report = evaluated(tmp_path, second, ablate="no-media,shuffled-media")
    assert not set(first.asked) & set(second.asked)
    assert len(first.asked) + len(second.asked) == 24
    assert set(report.results["controls"]["probe"]) == {"chance", "no-media", "shuffled-media"}
    assert report.results["needs_media"]["probe"]["acc,none"]["controls"] == ["no-media"]


def test_controls_are_added_to_a_completed_run(tmp_path: Path) -> None:
    picture_task(tmp_path)
    evaluated(tmp_path, Looker())
    model = Looker()
    report = evaluated(tmp_path, model, ablate="no-media", resume=True)
    assert {name.partition("/")[0] for name in model.asked} == {"probe@no-media"}
    assert report.results["controls"]["probe"]["no-media"]["acc,none"]["gap"] == 0.75
    assert len(kit.run_folders(tmp_path / "out")) == 1


def test_scoring_processes_score_controls_and_rotations(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=4, scoring="process")
    report = evaluated(tmp_path, Looker(), ablate="no-media,choices-only", permute_choices=2, score_workers=1)
    assert report.results["results"]["probe@no-media"]["acc,none"] == 0.25
    assert report.results["results"]["probe@rotation-1"]["acc,none"] == 1.0


def test_rotations_are_taken_together(tmp_path: Path) -> None:
    picture_task(tmp_path)

    class Stubborn(Looker):
        """Right in any order about documents 0 to 3, else always the letter of the first order."""

        def _answer(self, request: Request) -> str:
            right = super()._answer(request)
            return right if request.doc_id < 4 else "ABCD"[request.doc_id % 4]

    report = evaluated(tmp_path, Stubborn(), permute_choices=3)
    results = report.results
    assert results["results"]["probe"]["acc,none"] == 1.0
    assert results["results"]["probe@rotation-1"]["acc,none"] == 0.5
    assert "needs_media" not in results
    found = results["controls"]["probe"]["rotations"]["acc,none"]
    assert found["mean_interval"]["estimand"] == found["all_right_interval"]["estimand"] == "generalised accuracy"
    assert (found["mean"], found["all_right"], found["n"], found["orders"]) == (pytest.approx(4 / 6), 0.5, 8, 3)
    assert 0 < found["mean_interval"]["low"] < found["mean"] < found["mean_interval"]["high"] < 1
    assert 0 < found["all_right_interval"]["low"] < 0.5 < found["all_right_interval"]["high"] < 1
    assert "mean of 3 rotations" in report.table
    assert "right in all 3" in report.table


def test_a_document_is_asked_in_no_more_orders_than_it_has_choices(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=4)
    model = Looker()
    evaluated(tmp_path, model, permute_choices=9)
    assert len(model.asked) == 4 * 4


def test_a_task_that_does_not_say_where_its_choices_are_is_refused(tmp_path: Path) -> None:
    picture_task(tmp_path, choices=None)
    with pytest.raises(UsageError, match="'probe' does not say where its documents have their choices"):
        evaluated(tmp_path, Looker(), permute_choices=2)
    with pytest.raises(UsageError, match="probe: no control choices-only: it states no choices"):
        evaluated(tmp_path, Looker(), ablate="choices-only")


def test_a_task_without_media_is_left_alone_beside_others(tmp_path: Path) -> None:
    folder = picture_task(tmp_path, documents=4)
    kit.tasks(tmp_path)  # a task of texts in the same folder
    assert folder == tmp_path / "tasks"

    class Any(Looker):
        def _answer(self, request: Request) -> str:
            request.build_messages()
            return "A"

    model = Any()
    report = evaluated(tmp_path, model, tasks=f"probe,{kit.NAME}", ablate="no-media")
    assert {name.partition("/")[0] for name in model.asked} == {"probe", "probe@no-media", kit.NAME}
    assert set(report.results["controls"]) == {"probe"}
    with pytest.raises(UsageError, match=f"{kit.NAME}: no control no-media: its documents have no media"):
        evaluated(tmp_path, model, tasks=kit.NAME, ablate="no-media")


def test_one_document_has_nothing_to_be_shuffled_with(tmp_path: Path) -> None:
    picture_task(tmp_path, documents=1)
    with pytest.raises(UsageError, match="one document alone"):
        evaluated(tmp_path, Looker(), ablate="shuffled-media")


class Simple(lmms):
    """A class plugin of the simple interface that notes what it is shown."""

    is_simple = True

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[tuple[str, int], tuple[str, list[Any]]] = {}

    def generate_until(self, requests: list[Any]) -> list[str]:
        for instance in requests:
            context, _, doc_to_visual, doc_id, task, split = instance.args
            doc = self.task_dict[task][split][doc_id]
            self.shown[task, doc_id] = (context, doc_to_visual(doc))
        return ["A"] * len(requests)

    def loglikelihood(self, requests: list[Any]) -> Any:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> Any:
        raise NotImplementedError


class Chat(Simple):
    """The same of the chat interface."""

    is_simple = False

    def generate_until(self, requests: list[Any]) -> list[str]:
        for instance in requests:
            context, doc_to_messages, _, doc_id, task, split = instance.args
            turns = doc_to_messages(self.task_dict[task][split][doc_id])
            media = [part["url"] for turn in turns for part in turn["content"] if part["type"] == "image"]
            self.shown[task, doc_id] = (context, media)
        return ["A"] * len(requests)


@pytest.mark.parametrize("plugin", [Simple, Chat])
def test_class_plugins_are_shown_what_the_control_shows(tmp_path: Path, plugin: type[Simple]) -> None:
    picture_task(tmp_path, documents=4)
    model = plugin()
    report = evaluated(tmp_path, model, ablate=ALL, permute_choices=2)
    assert report.exit_code == 0
    shown = model.shown
    assert len(shown) == 6 * 4
    assert shown["probe", 1][1][0].getpixel((0, 0)) == COLOURS["green"]
    assert shown["probe@no-media", 1][1] == shown["probe@choices-only", 1][1] == []
    assert "<image>" not in shown["probe@no-media", 1][0]
    assert shown["probe@blank-media", 1][1][0].size == (9, 6)
    assert shown["probe@blank-media", 1][1][0].getpixel((0, 0)) == (127, 127, 127)
    assert {shown["probe@shuffled-media", number][1][0].size[0] - 8 for number in range(4)} == set(range(4))
    assert shown["probe@shuffled-media", 1][1][0].size != (9, 6)
    assert shown["probe@rotation-1", 1][0] == "<image>colour 1?\nA. green\nB. blue\nC. white\nD. red"


def test_the_live_number_is_that_of_the_plain_task_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture_task(tmp_path)
    found = []

    def noted(*arguments: Any) -> Sampling | None:
        found.append(sampling_of(*arguments))
        return found[-1]

    monkeypatch.setattr("lmms_eval.evaluation.sampling.sampling_of", noted)
    report = evaluated(tmp_path, Looker(), ablate="no-media,blank-media", order="random")
    assert report.exit_code == 0 and {"probe", "probe@no-media"} <= set(report.results["results"])
    (sampling,) = found
    assert sampling is not None and [part.task for part in sampling.shown] == ["probe"]


def test_a_server_gets_grey_frames_of_the_same_size_for_a_video(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    video = write_video(folder / "v.mp4", 12)
    write_rows(folder, [{"question": "What moves? ANSWER=a", "answer": "a", "video": str(video)}])
    (folder / "utils.py").write_text("def doc_to_visual(doc):\n    return [doc['video']]\n")
    write_yaml(
        folder / "probe.yaml",
        {**BASE, "doc_to_text": "question", "doc_to_visual": Function("utils.doc_to_visual")},
    )
    with StubServer() as server:
        arguments = f"model=stub,base_url={server.url},api_key=x,num_concurrent=1,max_frames_num=4"
        chosen = kit.config(tmp_path, model="openai", model_args=arguments, tasks="probe", ablate="blank-media")
        report = run(chosen)
        bodies = [body for body in server.bodies() if "messages" in body]
    assert report.exit_code == 0 and report.results["controls"]["probe"]["blank-media"]["exact_match,none"]["gap"] == 0

    def frames(body: Any) -> list[Image.Image]:
        parts = [part for part in body["messages"][-1]["content"] if part["type"] == "image_url"]
        return [Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2]))) for part in parts]

    shown = [frames(body) for body in bodies]
    spread = [max(high - low for frame in of for low, high in frame.convert("RGB").getextrema()) for of in shown]
    (grey,), (plain,) = (
        [of for of, wide in zip(shown, spread, strict=True) if (wide < 8) == is_grey] for is_grey in (1, 0)
    )
    assert [frame.size for frame in grey] == [frame.size for frame in plain] and len(grey) == 4
    assert all(abs(frame.convert("L").getpixel((5, 5)) - 127) < 5 for frame in grey)


@for_each("shared", [1, 4])
def test_a_control_has_the_clusters_of_its_task(shared: int, tmp_path: Path) -> None:
    folder = picture_task(tmp_path / str(shared), 8)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    write_rows(folder, [{**row, "picture": rows[number % (8 // shared)]["picture"]} for number, row in enumerate(rows)])
    report = evaluated(tmp_path / str(shared), Looker(), ablate="blank-media,shuffled-media")
    clusters = report.results["clusters"]
    assert {name: entry["count"] for name, entry in clusters.items()} == dict.fromkeys(clusters, 8 // shared)
    assert len(clusters) == 3

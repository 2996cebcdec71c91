"""Metrics of generated videos, with tiny networks and with features or scores from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import video_networks
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure
from lmms_eval.tasks.general_bench.networks.pictures import B32, L14, Clip, clip, dino
from tests.cases import for_each
from tests.tasks.general_bench.networks import kit
from tests.tasks.general_bench.networks.test_video_features import Layers

BACKGROUND = "Background-Consistency Text to Video Geneation"
SUBJECT = "Subject-Consistency Text to Video Generation"
STYLE = "Style-Specific Text to Video Generation"
STYLIZED = "Stylized Video Generation-Single Reference"
TRANSLATION = "Video Translation"
ARTISTIC = "Artistic Content Text to Video Generation"
SCENE = "Scene Text to Video Generation"
SHARPER = "Road Scene Video Superresolution"
HUMANS = "Human Video Generation"
FRAMES = 4


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("weights")
    for network in (B32, L14):
        kit.save_clip(place / network.key)
    kit.save_dino(place / "dino-vitb16")
    torch.manual_seed(6)
    torch.save(torch.nn.Linear(8, 1).state_dict(), place / "laion-aesthetic-vit-l-14-linear.pth")
    torch.save(Layers(4).eval().state_dict(), place / "r3d_18.pth")
    return place


@pytest.fixture
def network(weights: Path, tmp_path: Path) -> Clip:
    return clip(B32, Context(weights=weights), kit.item(tmp_path))


def measure(name: str) -> Measure:
    return next(one for one in video_networks.MEASURES if one.name == name)


def video_item(tmp_path: Path, task: str, **more: Any) -> Item:
    """An item with the predicted video ``v``."""
    item = kit.item(tmp_path, task, "video", **more)
    kit.video(item.prediction_folder / "v", FRAMES)
    return item


def given(tmp_path: Path, rows: Any) -> Context:
    kit.array(tmp_path / "given" / "data" / "7.npy", rows)
    return Context(options={"reference_features": tmp_path / "given"})


def frames() -> list[Any]:
    return [kit.picture(seed) for seed in range(FRAMES)]


def pairs(rows: np.ndarray) -> float:
    """Sum of the consistency of frames, pair by pair."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return sum(
        (max(0.0, float(unit[i] @ unit[i - 1])) + max(0.0, float(unit[i] @ unit[0]))) / 2 for i in range(1, len(unit))
    )


def test_background_consistency_pools_over_frame_pairs(tmp_path: Path, weights: Path, network: Clip) -> None:
    item = video_item(tmp_path, BACKGROUND)
    rows = network.pictures(frames())
    found = measure("clip_score/background")

    state = found.state("v", item, Context(weights=weights))

    assert state == [pytest.approx(pairs(rows), abs=1e-5), FRAMES - 1]
    assert found.value([state, [0.0, 1]]) == pytest.approx(100 * pairs(rows) / FRAMES, abs=1e-4)
    kit.array(item.prediction_folder / "v.npy", rows)
    assert found.state({"features": "v.npy"}, item, Context())[0] == pytest.approx(state[0], abs=1e-6)


def test_subject_consistency_is_of_dino(tmp_path: Path, weights: Path) -> None:
    item = video_item(tmp_path, SUBJECT)
    context = Context(weights=weights)
    rows = dino(context, item).pictures(frames())

    state = measure("dino_score").state("v", item, context)

    assert state == [pytest.approx(pairs(rows), abs=1e-5), FRAMES - 1]
    kit.array(item.prediction_folder / "v.npy", rows)
    assert measure("dino_score").state({"features": "v.npy"}, item, Context()) == [
        pytest.approx(state[0], abs=1e-6), FRAMES - 1,
    ]  # fmt: skip


def test_one_frame_is_no_video(tmp_path: Path, weights: Path) -> None:
    item = kit.item(tmp_path, BACKGROUND, "video")
    kit.video(item.prediction_folder / "one", 1)

    for name in ("clip_score/background", "dino_score"):
        with pytest.raises(UnreadableAnswer, match="at least 2 frames"):
            measure(name).state("one", item, Context(weights=weights))


@pytest.mark.parametrize(
    ("raw", "text"), [({"input": {"style": "oil painting"}}, "oil painting"), ({"input": {}}, "a red car")]
)
def test_style_is_a_text(tmp_path: Path, weights: Path, network: Clip, raw: dict[str, Any], text: str) -> None:
    item = video_item(tmp_path, STYLE, raw=raw)
    wanted = network.texts([text])
    expected = float((network.pictures(frames()) @ wanted[0]).sum())
    found = measure("clip_score/style")

    state = found.state("v", item, Context(weights=weights))

    assert state == [pytest.approx(expected, abs=1e-5), FRAMES]
    assert found.value([state, [1.0, 1]]) == pytest.approx(100 * (expected + 1) / (FRAMES + 1), abs=1e-4)
    kit.array(item.prediction_folder / "v.npy", network.pictures(frames()))
    assert found.state({"features": "v.npy"}, item, given(tmp_path, wanted))[0] == pytest.approx(state[0], abs=1e-5)


def test_a_style_can_be_pictures(tmp_path: Path, weights: Path, network: Clip) -> None:
    path = tmp_path / "style.png"
    kit.save(kit.picture(8), path)
    item = video_item(tmp_path, STYLIZED, media=kit.input_picture(path))
    rows, shown = network.pictures(frames()), network.pictures([kit.picture(8)])
    state = measure("clip_style_score").state

    found = state("v", item, Context(weights=weights))

    assert found == pytest.approx(100 * float((rows @ shown[0]).mean()), abs=1e-4)
    kit.array(item.prediction_folder / "v.npy", rows)
    assert state({"features": "v.npy"}, item, given(tmp_path, shown)) == pytest.approx(found, abs=1e-4)
    with pytest.raises(DataError, match="no input picture"):
        state("v", video_item(tmp_path / "", STYLIZED), Context(weights=weights))


def test_frame_accuracy_counts_frames_nearer_to_the_target(tmp_path: Path, weights: Path, network: Clip) -> None:
    prompts = {"source_prompt": "a red car", "target_prompt": "a blue dog"}
    item = video_item(tmp_path, TRANSLATION, raw={"input": prompts})
    source, target = (network.pictures(frames()) @ network.texts([text])[0] for text in prompts.values())
    state = measure("frame_accuracy_clip").state

    assert state("v", item, Context(weights=weights)) == pytest.approx(25 * int((target > source).sum()))


def test_frame_accuracy_from_files(tmp_path: Path) -> None:
    """The last frame is as near to either prompt: not nearer to the target."""
    item = kit.item(tmp_path, TRANSLATION, "video")
    kit.array(item.prediction_folder / "v.npy", [[1.0, 0.0], [0.0, 1.0], [0.1, 1.0], [1.0, 1.0]])
    state = measure("frame_accuracy_clip").state

    assert state({"features": "v.npy"}, item, given(tmp_path, [[1.0, 0.0], [0.0, 1.0]])) == 50
    with pytest.raises(DataError, match="in two rows"):
        state({"features": "v.npy"}, item, given(tmp_path, [[1.0, 0.0]]))
    with pytest.raises(DataError, match="source_prompt"):
        state({"features": "v.npy"}, item, Context())


def test_aesthetic_score_is_a_tenth_of_the_rating(tmp_path: Path, weights: Path) -> None:
    item = video_item(tmp_path, ARTISTIC)
    context = Context(weights=weights)
    rows = clip(L14, context, item).pictures(frames())
    torch.manual_seed(6)
    with torch.no_grad():
        expected = float(torch.nn.Linear(8, 1)(torch.from_numpy(rows)).mean()) * 10
    state = measure("aesthetic_score").state

    assert state("v", item, context) == pytest.approx(expected, abs=1e-4)
    kit.array(item.prediction_folder / "v.npy", rows)
    assert state({"features": "v.npy"}, item, context) == pytest.approx(expected, abs=1e-4)
    with pytest.raises(NotEvaluated, match="needs the weights laion-aesthetic-vit-l-14-linear"):
        state({"features": "v.npy"}, item, Context())


def test_fvd_pairs_the_videos(tmp_path: Path, weights: Path) -> None:
    item = video_item(tmp_path, HUMANS, reference="real")
    kit.video(item.folder / "videos" / "real", FRAMES, 20)
    kit.video(item.prediction_folder / "copy", FRAMES, 20)
    fvd = measure("fvd")
    context = Context(weights=weights)

    state = fvd.state("v", item, context)
    same = fvd.state("copy", item, context)

    assert [len(vector) for vector in state] == [32, 32]
    assert state[0] != state[1]
    assert same[0] == same[1] == state[1]
    assert fvd.value([same, [state[0], state[0]]]) == pytest.approx(0, abs=1e-6)
    kit.array(item.prediction_folder / "v.npy", np.array(state[0], np.float32))
    assert fvd.state({"features": "v.npy"}, item, given(tmp_path, state[1])) == state
    with pytest.raises(NotEvaluated, match="fvd of 'Human Video Generation' needs the weights r3d_18"):
        fvd.state("v", item, Context())


class Recorder:
    """In place of MUSIQ: remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int | None]] = []

    def __call__(self, network: Any, context: Context, item: Item) -> Recorder:
        self.name = network.key
        return self

    def pictures(self, images: Any, longest: int | None = None) -> list[float]:
        self.asked.append((self.name, longest))
        return [10.0 * number for number, _ in enumerate(images)]


def test_quality_is_by_spaq_for_generated_and_by_koniq_for_sharper_videos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(video_networks, "musiq", recorder)

    states = [measure("musiq").state("v", video_item(tmp_path, task), Context()) for task in (SCENE, SHARPER)]

    assert states == [15, 15]
    assert recorder.asked == [("musiq-spaq", 512), ("musiq-koniq", None)]


def test_quality_can_be_scored_elsewhere(tmp_path: Path) -> None:
    item = kit.item(tmp_path, SHARPER, "video")
    (item.prediction_folder / "v.json").write_text(json.dumps([40, 60.5]))
    state = measure("musiq").state

    assert state({"scores": [40, 60.5]}, item, Context()) == 50.25
    assert state({"scores": "v.json"}, item, Context()) == 50.25


@for_each("scores", [[], [101], [-1], ["a"], [True], {"a": 1}, "none.json", "/dev/zero", [float("nan")]])
def test_other_scores_are_unreadable(tmp_path: Path, scores: Any) -> None:
    with pytest.raises(UnreadableAnswer):
        measure("musiq").state({"scores": scores}, kit.item(tmp_path, SHARPER, "video"), Context())


@for_each(
    ("name", "task", "missing"),
    [
        ("clip_score/background", BACKGROUND, "openai/clip-vit-base-patch32"),
        ("clip_score/style", STYLE, "openai/clip-vit-base-patch32"),
        ("clip_style_score", STYLIZED, "openai/clip-vit-base-patch32"),
        ("frame_accuracy_clip", TRANSLATION, "openai/clip-vit-base-patch32"),
        ("aesthetic_score", ARTISTIC, "openai/clip-vit-large-patch14"),
        ("dino_score", SUBJECT, "facebook/dino-vitb16"),
    ],
)
def test_without_weights_nothing_is_scored(tmp_path: Path, name: str, task: str, missing: str) -> None:
    with pytest.raises(NotEvaluated, match=f"of '{task}' needs the weights {missing}"):
        measure(name).state("v", video_item(tmp_path, task), Context())


def test_every_measure_tells_its_needs() -> None:
    assert all(one.needs and one.checked and one.form == "video" for one in video_networks.MEASURES)
    assert len({one.name for one in video_networks.MEASURES}) == len(video_networks.MEASURES) == 13

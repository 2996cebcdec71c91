from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval.errors import DataError, LmmsEvalError, MediaError
from lmms_eval.tasks.general_bench.facts import metrics, tasks
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.pixels import MEASURES
from tests.tasks.general_bench.readers.pixel_files import (
    noise,
    write_flo,
    write_flow_png,
    write_frames,
    write_lossless,
    write_picture,
)

BY_NAME = {measure.name: measure for measure in MEASURES}


class Bench:
    """A folder with a reference and a folder with predictions."""

    def __init__(self, folder: Path, name: str) -> None:
        self.measure = BY_NAME[name]
        self.task, self.answers = folder / "task", folder / "answers"
        self.task.mkdir()
        self.answers.mkdir()

    def item(self, reference: Any) -> Item:
        return Item(
            id=1,
            facts=tasks()[200],
            form=self.measure.form,
            prompt="",
            media=(),
            reference=reference,
            folder=self.task,
            prediction_folder=self.answers,
            raw={},
        )

    def state(self, prediction: Any, reference: Any) -> Any:
        state = self.measure.state(prediction, self.item(reference), Context())
        assert json.loads(json.dumps(state, allow_nan=False)) == state
        return state

    def value(self, *pairs: tuple[Any, Any]) -> float:
        return self.measure.value([self.state(*pair) for pair in pairs])

    def pictures(self, prediction: np.ndarray, reference: np.ndarray, name: str = "a.png") -> tuple[str, str]:
        write_picture(self.task / name, reference)
        write_picture(self.answers / name, prediction)
        return name, name

    def arrays(self, prediction: np.ndarray, reference: np.ndarray, name: str = "a.npy") -> tuple[str, str]:
        np.save(self.task / name, reference)
        np.save(self.answers / name, prediction)
        return name, name


@pytest.fixture
def bench(tmp_path, request):
    return Bench(tmp_path, request.param)


def bench_of(name: str) -> Any:
    return pytest.mark.parametrize("bench", [name], indirect=True, ids=[name])


def test_every_measure_is_of_a_known_metric_and_tells_what_it_is_checked_against():
    assert len(BY_NAME) == len(MEASURES) == 12
    for measure in MEASURES:
        metric = metrics()[measure.name.partition("/")[0]]
        assert measure.checked
        assert measure.unanswered is None
        assert not measure.is_mean or metric.higher_is_better


@bench_of("epe")
def test_epe_is_the_mean_over_videos(bench):
    flow = np.random.default_rng(1).normal(size=(4, 5, 2)).round(1)
    write_flo(bench.task / "a.flo", flow)
    write_flo(bench.answers / "a.flo", flow + np.array([3, 4]))
    write_flow_png(bench.task / "b.png", np.round(flow))
    write_flo(bench.answers / "b.flo", np.round(flow))
    assert bench.value(("a.flo", "a.flo"), ("b.flo", "b.png")) == pytest.approx(2.5, rel=1e-6)


@bench_of("abs_rel")
def test_abs_rel_aligns_and_averages_over_videos(bench):
    depth = np.random.default_rng(1).uniform(1, 50, (2, 1, 4, 5))
    np.savez(bench.task / "a.npz", disparity=depth)
    np.savez(bench.answers / "a.npz", depth=depth * 3 + 2)
    one = bench.arrays(np.full((1, 2), 7.0), np.array([[10.0, 30.0]]), "b.npy")
    assert bench.value(("a.npz", "a.npz")) == pytest.approx(0, abs=1e-6)
    assert bench.value(("a.npz", "a.npz"), one) == pytest.approx(1 / 3, abs=1e-6)


@bench_of("rms")
def test_rms_is_the_mean_over_pictures(bench):
    one = bench.pictures(np.full((2, 2), 503, np.uint16), np.full((2, 2), 500, np.uint16))
    other = bench.pictures(np.full((2, 2), 7, np.uint16), np.full((2, 2), 2, np.uint16), "b.png")
    assert bench.value(one, other) == pytest.approx(4)


@bench_of("rmse/normals")
def test_normals_of_points_have_no_sign_and_those_of_maps_have(bench):
    points = bench.arrays(np.array([[0, 0, -1.0]] * 4), np.array([[0, 0, 1.0]] * 4))
    assert bench.value(points) == pytest.approx(0, abs=1e-9)
    maps = bench.arrays(np.full((2, 2, 3), (0, 0, -1.0)), np.full((2, 2, 3), (0, 0, 1.0)), "b.npy")
    assert bench.value(maps) == pytest.approx(180)


@bench_of("psnr")
def test_psnr_leaves_identical_pictures_out(bench):
    reference = noise(1, 5, 6, 3) // 2
    same = bench.pictures(reference, reference, "a.png")
    off = bench.pictures(reference + 10, reference, "b.png")
    expected = 20 * math.log10(25.5)
    assert bench.value(off) == pytest.approx(expected)
    assert bench.value(same, off) == pytest.approx(expected)
    assert bench.value(same) == 100


@bench_of("psnr/video")
def test_psnr_of_videos_is_the_mean_over_all_their_frames(bench):
    reference = noise(1, 3, 16, 24, 3) // 2
    spoilt = reference.copy()
    spoilt[1] += 1
    spoilt[2] += 10
    write_frames(bench.task / "a", reference)
    write_lossless(bench.answers / "a.avi", spoilt)
    write_frames(bench.task / "b", reference[:1])
    write_frames(bench.answers / "b", reference[:1] + 1)
    decibels = [20 * math.log10(255), 20 * math.log10(25.5), 20 * math.log10(255)]
    assert bench.value(("a.avi", "a"), ("b", "b")) == pytest.approx(sum(decibels) / 3)


@bench_of("psnr/video")
def test_videos_of_other_lengths_and_sizes_are_unreadable(bench):
    frames = noise(1, 3, 16, 24, 3)
    write_frames(bench.task / "a", frames)
    for name, answer, message in (
        ("short", frames[:2], "the prediction has 2 frames, the reference has more"),
        ("long", np.concatenate([frames, frames]), "the reference has 3 frames, the prediction has more"),
        ("small", frames[:, :8], "8x24x3, the reference's 16x24x3"),
    ):
        write_frames(bench.answers / name, answer)
        with pytest.raises(UnreadableAnswer, match=message):
            bench.state(name, "a")


@bench_of("ms_ssim")
def test_ms_ssim_of_grey_pictures(bench):
    reference = noise(1, 180, 190)
    assert bench.value(bench.pictures(reference, reference)) == pytest.approx(1)
    assert bench.value(bench.pictures(255 - reference, reference)) == 0
    with pytest.raises(DataError, match="176 pixels") as raised:
        bench.state(*bench.pictures(noise(1, 20, 20), noise(1, 20, 20)))
    assert not isinstance(raised.value, UnreadableAnswer)


@bench_of("rmse/image")
def test_rmse_of_pictures_is_the_mean_of_roots(bench):
    reference = noise(1, 4, 5, 3) // 2
    pairs = [bench.pictures(reference + step, reference, f"{step}.png") for step in (2, 10)]
    assert bench.value(*pairs) == pytest.approx(6)


@bench_of("sad")
def test_sad_is_in_thousands_of_pixels(bench):
    reference = np.zeros((50, 40), np.uint8)
    prediction = reference.copy()
    prediction[:25] = 255
    assert bench.value(bench.pictures(prediction, reference)) == pytest.approx(1)


@bench_of("mse")
def test_mse_of_mattes_is_in_thousandths(bench):
    reference = np.zeros((50, 40), np.uint8)
    prediction = np.full((50, 40), 51, np.uint8)
    assert bench.value(bench.pictures(prediction, reference)) == pytest.approx(40)
    cut_out = np.full((50, 40, 4), (9, 9, 9, 51), np.uint8)
    assert bench.value(bench.pictures(cut_out, reference)) == pytest.approx(40)


@bench_of("auc/map")
def test_auc_takes_the_pixels_of_all_pictures_together(bench):
    sklearn = pytest.importorskip("sklearn.metrics")
    scores, labels = [noise(1, 6, 7), noise(2, 5, 5)], [noise(3, 6, 7) > 99, np.zeros((5, 5), bool)]
    pairs = [
        bench.pictures(score, np.uint8(label) * scale, f"{scale}.png")
        for score, label, scale in zip(scores, labels, (255, 1), strict=True)
    ]
    expected = sklearn.roc_auc_score(
        np.concatenate([one.ravel() for one in labels]), np.concatenate([one.ravel() for one in scores])
    )
    assert bench.value(*pairs) == pytest.approx(100 * expected)


@bench_of("auc/map")
def test_auc_of_references_of_zeros_and_ones(bench):
    reference = np.array([[0, 1]], np.uint8)
    assert bench.value(bench.pictures(np.array([[10, 11]], np.uint8), reference)) == 100
    with pytest.raises(DataError, match="both positive and negative"):
        bench.value(bench.pictures(np.array([[10, 11]], np.uint8), reference * 0))


@bench_of("temporal_flickering")
def test_flickering_needs_no_reference(bench):
    still = np.full((4, 16, 16, 3), 80, np.uint8)
    write_lossless(bench.answers / "a.avi", still)
    still[1::2] += 51
    write_frames(bench.answers / "b", still)
    assert bench.value(("a.avi", None)) == 100
    assert bench.value(("a.avi", None), ("b", None)) == pytest.approx(90)


@bench_of("temporal_flickering")
def test_one_frame_cannot_flicker(bench):
    write_frames(bench.answers / "a", noise(1, 1, 4, 4, 3))
    with pytest.raises(UnreadableAnswer, match="at least 2 frames"):
        bench.state("a", None)


FILES = {
    "flow": "a.flo", "depth": "a.npy", "normals": "a.npy", "image": "a.png", "video": "a", "alpha": "a.png",
    "map": "a.png",
}  # fmt: skip


def reference_of(bench: Bench) -> str:
    """A sound reference in the measure's form."""
    name = FILES[bench.measure.form]
    match bench.measure.form:
        case "flow":
            write_flo(bench.task / name, np.ones((200, 180, 2)))
        case "depth" | "normals":
            np.save(bench.task / name, np.ones((200, 180, 3)))
        case "video":
            write_frames(bench.task / name, noise(1, 2, 20, 18, 3))
        case _:
            write_picture(bench.task / name, noise(1, 200, 180))
    return name


@pytest.mark.parametrize("bench", sorted(BY_NAME), indirect=True)
@pytest.mark.parametrize(
    "prediction",
    [
        None,
        5,
        True,
        "",
        "absent.png",
        [],
        ["a.png"],
        {"path": "a.png"},
        "/dev/zero",
        "\0",
        "x" * 9999,
        ".",
        "text.png",
        "text.npy",
    ],
)
def test_what_is_no_answer_is_unreadable(bench, prediction):
    for name in ("text.png", "text.npy"):
        (bench.answers / name).write_text("no numbers here")
    with pytest.raises(UnreadableAnswer):
        bench.state(prediction, reference_of(bench))


@pytest.mark.parametrize("bench", sorted(set(BY_NAME) - {"temporal_flickering", "psnr/video"}), indirect=True)
def test_nothing_is_resized(bench):
    name = reference_of(bench)
    match bench.measure.form:
        case "flow":
            write_flo(bench.answers / name, np.ones((180, 200, 2)))
        case "depth" | "normals":
            np.save(bench.answers / name, np.ones((180, 200, 3)))
        case _:
            write_picture(bench.answers / name, noise(1, 180, 200))
    with pytest.raises(UnreadableAnswer, match=r"180x200.*200x180"):
        bench.state(name, name)


@pytest.mark.parametrize("bench", sorted(set(BY_NAME) - {"temporal_flickering"}), indirect=True)
@pytest.mark.parametrize("reference", [None, 5, "absent.png", "../a.png", "/etc/passwd", "text.png"])
def test_a_damaged_reference_is_not_the_answers_fault(bench, reference):
    (bench.task / "text.png").write_text("no picture")
    with pytest.raises(LmmsEvalError) as raised:
        bench.state("a.png", reference)
    assert isinstance(raised.value, DataError | MediaError)
    assert not isinstance(raised.value, UnreadableAnswer)


@pytest.mark.parametrize("bench", ["abs_rel", "rms", "rmse/normals"], indirect=True)
def test_references_without_values_and_answers_with_wrong_ones(bench):
    shape = (4, 5, 3)
    with pytest.raises(DataError) as raised:
        bench.state(*bench.arrays(np.ones(shape), np.zeros(shape)))
    assert not isinstance(raised.value, UnreadableAnswer)
    with pytest.raises(UnreadableAnswer, match="not finite"):
        bench.state(*bench.arrays(np.full(shape, np.nan), np.ones(shape)))


@bench_of("epe")
def test_flows_that_are_not_finite(bench):
    write_flo(bench.task / "a.flo", np.ones((2, 2, 2)))
    write_flo(bench.answers / "a.flo", np.full((2, 2, 2), np.nan))
    with pytest.raises(UnreadableAnswer, match="not finite"):
        bench.state("a.flo", "a.flo")

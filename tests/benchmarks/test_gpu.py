"""The GPU suite at its tiny size, on the CPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from benchmarks.gpu import sections
from benchmarks.gpu.__main__ import measured
from benchmarks.gpu.activity import busy_share, covered
from benchmarks.gpu.sections import SECTIONS, Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("gpu"), "tiny", "cpu")


def test_the_engine_and_the_bare_loop_write_the_same_number_of_tokens(place: Place) -> None:
    report = sections.throughput(place, "vlm-3b", ("picture", "video"))
    for workload in ("picture", "video"):
        ours, bare = report[workload]["ours"], report[workload]["bare"]
        assert ours["tokens_per_s"] * ours["wall_s"] == pytest.approx(bare["tokens_per_s"] * bare["wall_s"])
        assert 0 <= ours["waits_for_host"] < 1
        assert report[workload]["ratio_wall"] == pytest.approx(bare["wall_s"] / ours["wall_s"])
        assert report[workload]["device_busy"] is None  # no kernels here


def test_the_largest_batches_of_each_workload_are_several(place: Place) -> None:
    report = sections.auto_batch(place)
    assert set(report) == {"text", "pictures", "video"}
    for workload, times in sections.AUTO_TIMES.items():
        assert report[workload]["ours"]["answers"] == times * place.scale.samples
        assert 0 <= report[workload]["ours"]["waits_for_host"] < 1


def test_vllm_is_measured_only_if_it_is_installed(place: Place) -> None:
    if importlib.util.find_spec("vllm") is not None:
        pytest.skip("vllm is installed: make test-engines measures it")
    assert "vllm" in sections.vllm(place)["not_measured"]


def test_answers_are_asked_again_alone(place: Place) -> None:
    report = sections.batch_dependence(place)
    assert (report["asked"], report["differing"], report["failed"]) == (place.scale.samples, 0, [])


def test_the_processor_is_timed(place: Place) -> None:
    report = sections.preprocessing(place)
    assert report["cpu"] > 0


def test_sections_without_time_say_so(tmp_path: Path) -> None:
    report = measured(tmp_path, "tiny", "cpu", list(SECTIONS), budget_s=0.0)
    assert set(report["sections"]) == set(SECTIONS)
    assert all("budget" in section["not_measured"] for section in report["sections"].values())


def test_a_section_that_fails_says_why(tmp_path: Path) -> None:
    report = measured(tmp_path, "tiny", "no-such-device", ["preprocessing"], budget_s=60.0)
    assert "no-such-device" in report["sections"]["preprocessing"]["failed"]


def test_what_kernels_cover() -> None:
    assert covered([]) is None
    assert covered([(0, 1), (2, 3)]) == pytest.approx(2 / 3)
    assert covered([(0, 4), (1, 2), (3, 6), (8, 10)]) == pytest.approx(0.8)
    assert busy_share(lambda: None) is None


def test_the_largest_number_of_rows_is_found() -> None:
    for limit in (1, 3, 20, 100):
        found = sections._largest(lambda rows: rows <= limit)  # noqa: B023
        assert found <= limit < found * 1.3 + 2

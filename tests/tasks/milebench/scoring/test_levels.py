from __future__ import annotations

from lmms_eval.tasks.milebench.scoring.model import LEVEL_RANGES, image_level


def test_the_borders() -> None:
    assert [image_level(number) for number in (0, 1, 5)] == ["Few"] * 3
    assert [image_level(number) for number in (6, 31)] == ["Medium"] * 2
    assert [image_level(number) for number in (32, 109)] == ["Many"] * 2
    assert tuple(LEVEL_RANGES) == ("Few", "Medium", "Many")

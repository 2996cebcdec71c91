from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.general_bench.settings import Settings
from tests.cases import for_each


def test_settings_of_other_models_are_passed_over() -> None:
    made = Settings.of({"qwen": {"subset": "x"}, "subset": "closed", "max_frames": 3})
    assert made == Settings(subset="closed", max_frames=3)
    assert Settings.of(None) == Settings()


def test_where_the_data_lie() -> None:
    assert Settings().root is None
    assert Settings(data_root="some/where").root == Path("some/where")
    demo = Settings(data_root="some/where", data_folder="demo").root
    assert demo is not None and (demo / "General-Bench-Openset").is_dir()


def test_what_measures_may_use() -> None:
    bare = Settings().context
    assert (bare.weights, bare.ratings, bare.download, bare.device) == (None, None, False, "cpu")
    assert bare.options == {
        "fad_network": "vggish", "wer_words": "spoken", "tracking": "auc", "s_measure": "published",
    }  # fmt: skip
    given = Settings(weights="w", ratings="r.csv", download=True, score_device="cuda", reference_features="f").context
    assert (given.weights, given.ratings) == (Path("w"), Path("r.csv"))
    assert (given.download, given.device) == (True, "cuda")
    assert given.options == {**bare.options, "reference_features": Path("f")}
    chosen = {"fad_network": "clap", "wer_words": "written", "tracking": "j_and_f", "s_measure": "authors"}
    assert Settings(**chosen).context.options == chosen


@for_each(
    ("given", "message"),
    [
        ({"sub_set": "open"}, "General-Bench has no task option 'sub_set'; there is: subset"),
        ({"subset": "both"}, "subset must be nothing or open or closed, not 'both'"),
        ({"predictions": ""}, "predictions must be output or beside"),
        ({"prediction_name": "a/b.json"}, "prediction_name must be a bare file name that ends with .json"),
        ({"prediction_name": "toy.txt"}, "prediction_name must be a bare file name that ends with .json"),
        ({"prediction_name": "annotation.json"}, "prediction_name must be another name than annotation.json"),
        ({"prediction_form": "dict"}, "prediction_form must be list or object"),
        ({"media_answers": "yes"}, "media_answers must be files or ask"),
        ({"extraction": 1}, "extraction must be official or fixed"),
        ({"max_frames": 0}, "max_frames must be a whole number from 1 on"),
        ({"max_frames": True}, "max_frames must be a whole number from 1 on"),
        ({"max_frames": 1.5}, "max_frames must be a whole number from 1 on"),
        ({"answer_limit": 0}, "answer_limit must be a whole number from 1 on"),
        ({"points": "show"}, "points must be render or refuse"),
        ({"fad_network": "x"}, "fad_network must be vggish or clap"),
        ({"wer_words": "x"}, "wer_words must be spoken or written"),
        ({"tracking": "x"}, "tracking must be auc or j_and_f"),
        ({"s_measure": "x"}, "s_measure must be published or authors"),
        ({"download": "yes"}, "download must be true or false"),
    ],
)
def test_wrong_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        Settings.of(given)

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.config import build_config, load_configs
from lmms_eval.config.options import WITHOUT_EFFECT, environment_defaults, options, variables_without_effect
from lmms_eval.errors import ConfigError
from tests.cases import for_each


@for_each(
    ("environ", "name", "value"),
    [
        ({"VERBOSITY": "warning"}, "verbosity", "WARNING"),
        ({"WORKERS": "3"}, "media_workers", 3),
        ({"LMMS_EVAL_DATASETS_CACHE": "/a", "HF_DATASETS_CACHE": "/b", "HF_HOME": "/c"}, "datasets_cache", "/a"),
        ({"LMMS_EVAL_DATASETS_CACHE": "", "HF_DATASETS_CACHE": "/b", "HF_HOME": "/c"}, "datasets_cache", "/b"),
        ({"HF_HOME": "/c"}, "datasets_cache", "/c/datasets"),
        ({"LMMS_EVAL_MEDIA_ROOT": "/m"}, "media_root", "/m"),
        ({"LMMS_EVAL_PLUGINS": "p,q"}, "plugins", "p,q"),
        ({"LMMS_IMAGE_ENCODE_FORMAT": "jpg"}, "image_encode_format", "JPEG"),
        ({"LMMS_IMAGE_JPEG_QUALITY": "70"}, "image_jpeg_quality", 70),
        ({"GITHUB_SHA": "abc"}, "git_commit", "abc"),
        ({"TORCHELASTIC_MAX_RESTARTS": "2"}, "max_restarts", 2),
    ],
)
def test_variables_give_defaults(environ: dict[str, str], name: str, value: object) -> None:
    assert getattr(build_config({"tasks": "t"}, environ), name) == value


def test_options_win_over_variables(tmp_path) -> None:
    environ = {"WORKERS": "3"}
    assert build_config({"tasks": "t", "media_workers": 5}, environ).media_workers == 5
    path = tmp_path / "c.yaml"
    path.write_text("media_workers: 6\n")
    assert load_configs({"config": str(path)}, environ).configs[0].media_workers == 6


@for_each("environ", [{"WORKERS": "many"}, {"VERBOSITY": "1"}, {"LMMS_IMAGE_ENCODE_FORMAT": "tga"}])
def test_a_wrong_value_names_its_variable(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(environ))} \(environment\)"):
        build_config({"tasks": "t"}, environ)


def test_keys_are_never_options() -> None:
    secrets = {"OPENAI_API_KEY": "sk-1", "HF_TOKEN": "hf_1", "ANTHROPIC_API_KEY": "x"}
    assert environment_defaults(secrets) == {}


def test_variables_without_effect_are_told_once_each() -> None:
    environ = {
        "LMMS_VIDEO_TORCHCODEC_THREADS": "2", "LMMS_CACHE_RUN_ID": "a", "LMMS_WATCHDOG_DIR": " ", "WORKERS": "3",
        "AWS_REGION": "eu-west-1",
    }  # fmt: skip
    first, second = variables_without_effect(environ)
    assert first.startswith("the environment variable LMMS_CACHE_RUN_ID has no effect here: an interrupted run")
    assert second.startswith("the environment variable LMMS_VIDEO_TORCHCODEC_THREADS has no effect here: videos")
    assert variables_without_effect({}) == []


def test_the_documentation_has_every_variable_without_effect() -> None:
    page = (Path(__file__).parents[2] / "docs/commands/eval.md").read_text(encoding="utf-8")
    assert [name for name in WITHOUT_EFFECT if f"`{name}`" not in page] == []


def test_no_option_reads_a_variable_without_effect() -> None:
    read = [variable for option in options() for variable in option.variables]
    assert variables_without_effect(dict.fromkeys(read, "x")) == []

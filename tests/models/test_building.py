"""Arguments that say nothing to a back end: one warning each, and only there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from lmms_eval.api.model import Model, RequestStream, lmms
from lmms_eval.api.request import Response
from lmms_eval.errors import ModelError
from lmms_eval.models.argument_names import IGNORED
from lmms_eval.models.building import ignored_arguments
from lmms_eval.models.hf.model import HuggingFace
from lmms_eval.models.hf.options import Profile
from lmms_eval.models.registry import ModelRegistry
from lmms_eval.models.remote.model import RemoteModel
from lmms_eval.models.sglang import SGLang
from lmms_eval.models.vllm import VLLM
from tests.cases import for_each

SERVER = "model=m,base_url=http://127.0.0.1:1/v1"


class Own(HuggingFace):
    """A wrapper with an argument of its own that others ignore."""

    profile = Profile(name="own", extra={"modality": str})


class Plugin(lmms):
    """A class of the family's interface."""

    def __init__(self, conv_template: str = "") -> None:
        super().__init__()
        self.conv_template = conv_template

    def generate_until(self, requests: list[Any]) -> list[Any]:
        return ["" for _ in requests]

    loglikelihood = generate_until_multi_round = generate_until


def test_each_one_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        built, _ = ModelRegistry().build("openai", f"{SERVER},conv_template=qwen_2,mm_spatial_pool_stride=2")
    built.close()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert told[0].startswith("model 'openai': the argument conv_template has no effect here: prompts go through")
    assert "mm_spatial_pool_stride" in told[1]


def test_a_misspelt_one_is_refused() -> None:
    with pytest.raises(ModelError, match="no model argument 'conv_templte'; did you mean conv_template"):
        ModelRegistry().build("openai", f"{SERVER},conv_templte=qwen_2")
    with pytest.raises(ModelError, match="'max_frame_nm'; did you mean max_frame"):
        ModelRegistry().build("openai", f"{SERVER},max_frame_nm=3")


@for_each("cls", [HuggingFace, RemoteModel, VLLM, SGLang])
def test_every_back_end_ignores_the_same(cls: type[Model]) -> None:
    names = [pattern.replace("*", "mode") for pattern in IGNORED]
    assert sorted(ignored_arguments(cls, [*names, "pretrained", "num_frames"])) == sorted(names)


@for_each("name", ["dummy", "plm", "async_hf", "openai", "vllm"])
@for_each("argument", ["allow_remote", "fail_on_missing", "max_tokens", "num_gpus", "temperature"])
def test_arguments_of_single_wrappers_are_used_or_noted(name: str, argument: str) -> None:
    cls = ModelRegistry().resolve(name).load()
    noted = ignored_arguments(cls, [argument])
    if argument == "max_tokens" and name in ("openai", "vllm"):
        assert noted == {} and cls.arguments_kind.same["max_tokens"] == "max_new_tokens"
    else:
        assert noted.keys() == {argument} and len(noted[argument]) > 20


def test_what_a_class_takes_itself_reaches_it() -> None:
    assert ignored_arguments(Own, ["modality", "image_token"]).keys() == {"image_token"}
    assert ignored_arguments(Plugin, ["conv_template"]) == {}


def test_a_model_without_such_a_table_ignores_nothing() -> None:
    class Plain(Model):
        def respond(self, stream: RequestStream) -> Iterator[Response]:
            yield from ()

    assert ignored_arguments(Plain, IGNORED) == {}

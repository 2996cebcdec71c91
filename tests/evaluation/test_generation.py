"""Options of ``--gen_kwargs`` that have no place, and the record of what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.generation import TakenOptions
from lmms_eval.api.request import Request
from lmms_eval.errors import ModelError
from lmms_eval.evaluation.generation import effective_request
from lmms_eval.evaluation.rescore import rescore
from lmms_eval.evaluation.run import run
from tests.cases import for_each
from tests.evaluation.kit import NAME, Told, config, inputs_of, right
from tests.servers.stub import StubServer


class Strict(Told):
    """A model that takes two options."""

    def __init__(self) -> None:
        super().__init__(right, "strict")
        self.options: list[Mapping[str, Any]] = []

    def generation_options(self) -> TakenOptions:
        return TakenOptions(frozenset({"temperature", "max_new_tokens"}))

    def sent_with(self, request: Request) -> Mapping[str, Any]:
        return {"options": {"temperature": request.generation.get("temperature")}, "api_key": "hidden", "media": {}}


def test_an_option_without_a_place_ends_the_run_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"odd_one \(there is no such option\)\. It takes: max_new") as error:
        inputs_of(config(tmp_path, gen_kwargs={"odd_one": 1, "max_new_tokens": 5}), Strict())
    assert error.value.exit_code == 2 and "--allow_ignored" in str(error.value)


def test_ignored_options_are_named(tmp_path: Path) -> None:
    chosen = config(tmp_path, gen_kwargs="odd_one=1,temperature=0", allow_ignored=True)
    report = run(chosen, Strict())
    assert report.results["ignored_gen_kwargs"] == ["odd_one"]
    assert any("asked without these options" in line and "odd_one" in line for line in report.lines)
    again = rescore(next((tmp_path / "out").rglob("run.json")).parent, {})
    assert again.results["ignored_gen_kwargs"] == ["odd_one"]
    assert again.results["effective_requests"] == report.results["effective_requests"]


def test_what_is_sent_is_recorded_without_secrets(tmp_path: Path) -> None:
    sent = run(config(tmp_path, gen_kwargs="temperature=0"), Strict()).results["effective_requests"][NAME]
    assert sent["options"] == {"temperature": 0} and "media" not in sent
    assert "hidden" not in str(sent) and len(sent["sha256"]) == 64


def test_a_request_that_cannot_be_told_does_not_end_the_run(tmp_path: Path) -> None:
    class Raising(Strict):
        def sent_with(self, request: Request) -> Mapping[str, Any]:
            raise ValueError(request.id)

    report = run(config(tmp_path), Raising())
    assert report.exit_code == 0 and "effective_requests" not in report.results


def test_the_hash_is_of_the_content_in_any_order() -> None:
    first = effective_request({"options": {"a": 1, "b": [1, 2]}, "media": {"x": 1}})
    assert first["sha256"] == effective_request({"media": {"x": 1}, "options": {"b": [1, 2], "a": 1}})["sha256"]
    assert first["sha256"] != effective_request({"options": {"a": 1, "b": [2, 1]}, "media": {"x": 1}})["sha256"]


def test_a_model_that_sends_nothing_has_no_record(tmp_path: Path) -> None:
    assert "effective_requests" not in run(config(tmp_path, model_args="strategy=gold")).results


def test_options_reach_an_open_server_as_they_are(tmp_path: Path) -> None:
    stated = 'logprobs=true,chat_template_kwargs={"enable_thinking":true},thinking_token_budget=512,extra_body={"a":1}'
    with StubServer() as server:
        chosen = config(
            tmp_path, model="openai", model_args=f"model=m,base_url={server.url},api_key=k", gen_kwargs=stated, limit=1
        )
        report = run(chosen)
        body = server.bodies()[0]
    wanted = {
        "logprobs": True,
        "chat_template_kwargs": {"enable_thinking": True},
        "thinking_token_budget": 512,
        "a": 1,
    }
    assert {name: body.get(name) for name in wanted} == wanted
    sent = report.results["effective_requests"][NAME]["options"]
    assert {name: sent.get(name) for name in wanted} == wanted
    assert sent.keys() == body.keys() - {"model", "messages"}


@for_each("address", ["https://api.openai.com/v1", "https://r.openai.azure.com/v1", "https://api.x.ai/v1"])
def test_a_vendors_own_service_gets_no_unknown_option(tmp_path: Path, address: str) -> None:
    arguments = f"model=m,base_url={address},api_key=k"
    chosen = config(tmp_path, model="openai", model_args=arguments, gen_kwargs="foo_bar=1")
    with pytest.raises(ModelError, match="foo_bar"):
        inputs_of(chosen)

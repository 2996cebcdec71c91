"""The family's interface, against a server on loopback."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.compat.llm_judge import ProviderFactory, Request, Response, ServerConfig, ServerInterface, get_server
from lmms_eval.errors import TaskError, UnknownNameError
from tests.servers.stub import StubServer


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    with StubServer(delay=0.05) as server:
        monkeypatch.setenv("OPENAI_API_URL", f"{server.url}/chat/completions")
        yield server


def config(**over: object) -> ServerConfig:
    return ServerConfig("jury", **{"num_retries": 0, **over})  # type: ignore[arg-type]


def test_evaluate_sends_what_the_config_says(stub: StubServer) -> None:
    server = get_server("openai", config(temperature=0.5, top_p=0.9, max_tokens=9, response_format="json"))
    server.config.system_prompt = "Be fair."
    response = server.evaluate(Request(messages=[{"role": "user", "content": "Rate it. ANSWER=7"}]))
    assert (response.content, response.model_used, response.success) == ("7", "jury", True)
    assert response.usage is not None
    (body,) = stub.bodies()
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.5, 0.9, 9)
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][0] == {"role": "system", "content": [{"type": "text", "text": "Be fair."}]}


def test_pictures_follow_the_last_user_text(stub: StubServer, tmp_path: Path) -> None:
    image = Image.new("RGB", (200, 100), "red")
    image.save(tmp_path / "red.jpg")
    buffer = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(buffer, "PNG")
    encoded = base64.b64encode(buffer.getvalue()).decode()
    request = Request(
        messages=[{"role": "user", "content": "first"}, {"role": "assistant", "content": "well"},
                  {"role": "user", "content": [{"type": "text", "text": "Same? ANSWER=yes"}]}],
        images=[image, str(tmp_path / "red.jpg"), encoded],
    )  # fmt: skip
    assert get_server("openai", config()).evaluate(request).content == "yes"
    last = stub.bodies()[0]["messages"][-1]["content"]
    assert [part["type"] for part in last] == ["text", "image_url", "image_url", "image_url"]
    assert last[1]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert last[3]["image_url"]["url"].endswith(encoded)


def test_the_ready_made_judgements(stub: StubServer) -> None:
    server = get_server("openai", config())
    custom = "{question} {answer} {pred}{prediction} {more} ANSWER=1"
    made = server.evaluate_binary("Q", "A", "P", custom_prompt=custom, more="m")
    assert (made["result"], made["model"], made["success"]) == (1, "jury", True)
    assert made["prompt"] == "Q A PP m ANSWER=1"
    assert server.evaluate_binary("Q", "A", "P ANSWER=Yes", output_format="yes/no")["result"] is True
    scores = server.evaluate_comparative("Q", "one", "two", custom_prompt="{response1} {response2} ANSWER=8 7")
    assert scores["scores"] == (8.0, 7.0)
    default = server.evaluate_comparative("Q", "one", "two", context="once", images=[Image.new("RGB", (8, 8))])
    assert "Context: once" in default["prompt"]
    with pytest.raises(TaskError, match="placeholder 'nothing'"):
        server.evaluate_binary("Q", "A", "P", custom_prompt="{nothing}")


def test_batches_run_at_once(stub: StubServer) -> None:
    server = get_server("async_openai", config(max_concurrent=4))
    numbers = [str(n % 2) for n in range(12)]
    made = asyncio.run(
        server.evaluate_binary_batch_async(
            ["q"] * 12, numbers, ["p"] * 12, custom_prompt="{question} {prediction} ANSWER={answer}"
        )
    )
    assert [one["result"] for one in made] == [n % 2 for n in range(12)]
    assert 2 <= stub.stats()["max_in_flight"] <= 4
    one = asyncio.run(server.evaluate_binary_async("Q", "A", "P", custom_prompt="ANSWER=1"))
    assert one["result"] == 1


def test_a_judge_without_a_reply_leaves_the_sample_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    with StubServer(fault="500") as server:
        monkeypatch.setenv("LLM_JUDGE_URL", server.url)
        with pytest.raises(NotEvaluated, match="gave no reply"):
            get_server("local", config()).evaluate_binary("Q", "A", "P")


def test_providers_by_name_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TYPE", "dummy")
    monkeypatch.setenv("MODEL_VERSION", "judge-9")
    server = get_server()
    assert server.evaluate(Request()).model_used == "judge-9"
    with pytest.raises(UnknownNameError, match="opnai"):
        ProviderFactory.create_provider("opnai")

    class Own(ServerInterface):
        def evaluate_batch(self, requests: object) -> list[Response]:  # type: ignore[override]
            return [Response('1, or {"style": 3}', "own")]

    monkeypatch.setattr(ProviderFactory, "_providers", dict(ProviderFactory._providers))
    ProviderFactory.register_provider("own", Own)
    assert get_server("own", config()).evaluate_binary("Q", "A", "P")["result"] == 1
    rubric = get_server("own", config()).evaluate_with_rubric("Q", "P", {"style": "how it reads"})
    assert rubric["scores"] == {"style": 3}
    assert '{"style": "how it reads"}' in rubric["prompt"]

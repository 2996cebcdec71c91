from __future__ import annotations

import pytest

from lmms_eval.errors import ModelError, UnknownNameError
from lmms_eval.judges import DEFAULT_JUDGE_MODEL, JudgeOptions, open_judge
from tests.cases import for_each

URL = "http://user:hunter2@127.0.0.1:9/v1?key=secret"


@for_each(
    ("model", "provider", "name"),
    [
        ("gpt-4o", "openai", "gpt-4o"),
        ("qwen2.5:7b", "openai", "qwen2.5:7b"),
        ("openai:qwen2.5:7b", "openai", "qwen2.5:7b"),
        ("hf:org/small", "hf", "org/small"),
        ("internvl:org/small", "internvl", "org/small"),
        (None, "openai", DEFAULT_JUDGE_MODEL),
    ],
)
def test_names(model: str | None, provider: str, name: str) -> None:
    options = JudgeOptions(model)
    assert (options.provider, options.name) == (provider, name)


def test_a_server_without_secrets_in_its_record() -> None:
    judge = open_judge(JudgeOptions("jury", URL, {"api_key": "sk-secret", "num_concurrent": 3}), {})
    assert judge.describe() == {"model": "jury", "provider": "openai", "base_url": "http://127.0.0.1:9/v1"}
    assert judge.model.concurrency == 3
    shown = repr(judge.identity()) + repr(judge.describe())
    assert "secret" not in shown
    assert "hunter2" not in shown
    faster = open_judge(JudgeOptions("jury", URL, {"num_concurrent": 30}), {})
    assert faster.identity() == judge.identity()
    other = open_judge(JudgeOptions("jury", URL, {"reasoning_effort": "high"}), {})
    assert other.identity() != judge.identity()
    at_ipv6 = open_judge(JudgeOptions("jury", "http://me:hunter2@[::1]:9/v1?key=hunter2", {"api_key": "sk-secret"}), {})
    assert at_ipv6.describe()["base_url"] == "http://[::1]:9/v1"


def test_megabench_key_goes_to_its_own_server_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "usual-key")
    url = "http://127.0.0.1:9/v1/chat/completions"
    environ = {"MEGABENCH_OPEN_API_KEY": "bench-key", "MEGABENCH_OPEN_API_URL": url}
    own = open_judge(JudgeOptions.from_environment(environ), environ)
    assert own.name == DEFAULT_JUDGE_MODEL
    assert own.model._endpoint.authorization == "Bearer bench-key"  # type: ignore[attr-defined]
    assert own.model._endpoint.url == url  # type: ignore[attr-defined]
    other = open_judge(JudgeOptions("jury", "http://127.0.0.1:8/v1"), environ)
    assert other.model._endpoint.authorization == "Bearer usual-key"  # type: ignore[attr-defined]


def test_the_environment_of_scripts() -> None:
    assert not JudgeOptions.from_environment({}).is_given
    assert JudgeOptions.from_environment({"OPENAI_API_KEY": "k"}).model == DEFAULT_JUDGE_MODEL
    named = JudgeOptions.from_environment({"MEGABENCH_OPEN_API_MODEL": "m", "MEGABENCH_OPEN_API_URL": "http://h/v1"})
    assert (named.model, named.base_url) == ("m", "http://h/v1")


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelError, match="--judge_model"):
        open_judge(JudgeOptions(), {})
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        open_judge(JudgeOptions("gpt-4o"), {})
    with pytest.raises(ModelError, match="names a server"):
        open_judge(JudgeOptions("hf:org/small", "http://h/v1"), {})
    with pytest.raises(UnknownNameError):
        open_judge(JudgeOptions("scripted:os.system"), {})
    with pytest.raises(ModelError, match="timout"):
        open_judge(JudgeOptions("jury", URL, {"timout": 3}), {})

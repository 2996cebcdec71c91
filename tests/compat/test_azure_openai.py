"""Azure clients of task files that ask a judge themselves."""

from __future__ import annotations

import pytest

from lmms_eval.azure_openai_compat import build_client, has_endpoint_support
from lmms_eval.errors import UsageError
from tests.cases import for_each

VARIABLES = (
    "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_BASE", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_DEPLOYMENT",
    "AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION", "AZURE_OPENAI_AD_TOKEN",
)  # fmt: skip


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@for_each("variable", ["AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_BASE"])
def test_a_client_of_the_resource(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "https://resource.example")
    assert not has_endpoint_support()
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "k")
    assert has_endpoint_support()
    client, deployment = build_client("gpt")
    assert deployment == "gpt" and client.api_key == "k"
    assert str(client.base_url) == "https://resource.example/openai/"
    monkeypatch.setenv("AZURE_OPENAI_DEPLOYMENT", "mine")
    assert build_client()[1] == "mine"


def test_absent_settings_are_named() -> None:
    with pytest.raises(UsageError, match="AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY, AZURE_OPENAI_DEPLOYMENT"):
        build_client()

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import DataError, MissingOptionalDependencyError, UsageError
from lmms_eval.utils.prices import Price, Spending, read_prices
from tests.cases import for_each

TABLE = """
currency: EUR
models:
  small: {input: 1, output: 4, reasoning: 8, image: 0.01, audio_second: 0.5, batch: 0.5}
  small-*: {input: 2, output: 2}
  "*": {input: 100, output: 100}
"""


def _file(folder: Path, text: str, name: str = "prices.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_the_exact_name_goes_before_wildcards_and_the_longest_wildcard_before_others(tmp_path) -> None:
    table = read_prices(_file(tmp_path, TABLE))
    assert table.currency == "EUR"
    prices = {name: table.price_of([name]).price.input for name in ("small", "small-2", "other")}
    assert prices == {"small": 1.0, "small-2": 2.0, "other": 100.0}
    assert table.price_of(["small-2"]).source.endswith("prices.yaml: small-*")


def test_json_is_read_too(tmp_path) -> None:
    text = json.dumps({"models": {"m": {"input": 1.5, "output": 3}}})
    assert read_prices(_file(tmp_path, text, "prices.json")).price_of(["m"]).currency == "USD"


def test_costs_by_hand(tmp_path) -> None:
    tariff = read_prices(_file(tmp_path, TABLE)).price_of(["small"])
    spent = Spending(2_000_000, 1_000_000, 250_000, pictures=3, audio_seconds=2.0)
    assert tariff.cost(spent) == pytest.approx(2 * 1 + 0.75 * 4 + 0.25 * 8 + 3 * 0.01 + 2 * 0.5)
    batched = read_prices(_file(tmp_path, TABLE)).price_of(["small"], is_batch=True)
    assert batched.cost(spent) == pytest.approx(tariff.cost(spent) / 2)
    assert tariff.shown(1234.5) == "1,234.50 EUR"
    assert tariff.shown(0.001234) == "0.001234 EUR"


@given(st.lists(st.integers(0, 10**9), min_size=3, max_size=3), st.lists(st.integers(0, 10**9), min_size=3, max_size=3))
def test_costs_add_up(one, other) -> None:
    price = Price(1.25, 7.5, reasoning=3.0, image=0.1)
    first, second = (Spending(a, b + c, c) for a, b, c in (one, other))
    assert price.cost(first) + price.cost(second) == pytest.approx(price.cost(first + second))


@for_each(
    ("text", "told"),
    [
        ("models: {m: {inputs: 1, output: 2}}", "unknown key 'inputs': did you mean 'input'"),
        ("models: {m: {input: 1, output: 2, cached: 1}}", "did you mean 'cached_input'"),
        ("model: {m: {input: 1, output: 2}}", "needs a mapping `models:`"),
        ("curency: EUR\nmodels: {m: {input: 1, output: 2}}", "unknown key 'curency': did you mean 'currency'"),
        ("models: {m: {input: -1, output: 2}}", "models.m.input: a price is a number from 0 on"),
        ("models: {m: {input: .nan, output: 2}}", "models.m.input: a price is a number from 0 on"),
        ("models: {m: {input: cheap, output: 2}}", "models.m.input: Input should be a valid number"),
        ("models: {m: {input: 1}}", "models.m.output: "),
        ("models: [a", "is neither YAML nor JSON: line 2"),
        ("- 1", "needs a mapping `models:`"),
    ],
)
def test_wrong_files_are_refused_with_the_place(text, told, tmp_path) -> None:
    with pytest.raises(DataError) as error:
        read_prices(_file(tmp_path, text))
    assert told in str(error.value)
    assert error.value.exit_code == 2


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        read_prices(str(tmp_path / "none.yaml"))


def test_a_model_without_a_price_is_refused_with_the_names_that_there_are(tmp_path) -> None:
    table = read_prices(_file(tmp_path, "models: {alpha: {input: 1, output: 1}, beta-*: {input: 1, output: 1}}"))
    assert table.find(["gamma"]) is None
    with pytest.raises(UsageError, match=r"no price for the model 'gamma'; the table has: alpha, beta-\*"):
        table.price_of(["gamma"])


def test_the_table_of_litellm(monkeypatch) -> None:
    package = ModuleType("litellm")
    package.model_cost = {  # type: ignore[attr-defined]
        "sample_spec": {"input_cost_per_token": "a text", "output_cost_per_token": None},
        "gpt": {
            "input_cost_per_token": 2e-6,
            "output_cost_per_token": 8e-6,
            "cache_read_input_token_cost": 5e-7,
            "input_cost_per_token_batches": 1e-6,
        },
    }
    monkeypatch.setitem(sys.modules, "litellm", package)
    monkeypatch.delenv("LITELLM_LOCAL_MODEL_COST_MAP", raising=False)
    table = read_prices("litellm")
    assert list(table.models) == ["gpt"]
    price = table.price_of(["gpt"]).price
    assert (price.input, price.output, price.cached_input, price.batch) == pytest.approx((2, 8, 0.5, 0.5))
    assert table.price_of(["openai/gpt"]).source == "litellm.model_cost: gpt"


def test_without_litellm(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(MissingOptionalDependencyError, match="pip install litellm"):
        read_prices("litellm")

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.config.resolve import apply_environment, mask, read_config_file
from lmms_eval.errors import ConfigError
from tests.cases import for_each
from tests.parity.vectors import GOLDEN_DIR

INPUTS = GOLDEN_DIR / "harness" / "inputs"


def _write(folder: Path, text: str) -> str:
    path = folder / "config.yaml"
    path.write_text(text)
    return str(path)


def _applied(folder: Path, text: str, environ: dict[str, str]) -> list[str]:
    return apply_environment(read_config_file(_write(folder, text)), environ)


@for_each(
    ("value", "expected"),
    [
        ("'${NOPE:-/default/place}'", "/default/place"),
        ("'${EMPTY:-/default/place}'", "/default/place"),
        ("'${HOME_DIR:-/default}/x'", "/home/me/x"),
        ("'$HOME_DIR/x'", "/home/me/x"),
        ("'${HOME_DIR}x'", "/home/mex"),
        ("'${NOPE:-$HOME_DIR/y}'", "/home/me/y"),
        ("'${NOPE:-${ALSO_NOPE:-z}}'", "z"),
        ("'${NOPE:-}'", ""),
        ("'$$HOME_DIR'", "$HOME_DIR"),
        ("'costs 5$'", "costs 5$"),
        ("'$5'", "$5"),
        ("8", "8"),
        ("0.5", "0.5"),
        ("true", "True"),
    ],
)
def test_expansion(tmp_path: Path, value: str, expected: str) -> None:
    environ = {"HOME_DIR": "/home/me", "EMPTY": ""}
    _applied(tmp_path, f"env: {{MINE: {value}}}\n", environ)
    assert environ["MINE"] == expected


def test_variables_are_set_in_file_order_for_all_runs(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    lines = _applied(tmp_path, "- env: {A: one, B: '$A-two'}\n- env: {C: '${B}-three', A: late}\n", environ)
    assert environ == {"A": "late", "B": "one-two", "C": "one-two-three"}
    assert lines == ["Config env: A=one", "Config env: B=one-two", "Config env: C=one-two-three", "Config env: A=late"]


@pytest.mark.skipif(not INPUTS.is_dir(), reason=f"no recorded inputs at {INPUTS}")
def test_recorded_files() -> None:
    environ: dict[str, str] = {}
    items = read_config_file(str(INPUTS / "cfg4.yaml"))
    assert apply_environment(items, environ) == [
        "Config env: MY_HOME=/default/place",
        "Config env: MY_API_KEY=********",
    ]
    assert environ == {"MY_HOME": "/default/place", "MY_API_KEY": "abcdefghijkl"}
    assert dict(items[0].values) == {"model": "scripted", "tasks": "gold_short", "limit": 4}
    assert [item.values["tasks"] for item in read_config_file(str(INPUTS / "cfg2.yaml"))] == [
        "gold_short",
        "gold_part_a",
    ]


@given(name=st.text(), word=st.sampled_from(["key", "Token", "SECRET", "password"]), value=st.text(min_size=1))
def test_secrets_are_masked(name: str, word: str, value: str) -> None:
    shown = mask(f"{name}_{word}", value)
    assert set(shown) == {"*"}
    assert len(shown) == min(8, len(value))


def test_a_secret_never_stands_in_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _applied(tmp_path, "env: {MY_API_KEY: 'abc$hidden_part'}\n", {})
    assert "hidden_part" not in str(caught.value)
    assert "MY_API_KEY" in str(caught.value)


@for_each(
    ("text", "message"),
    [
        ("env: {A: '$NOPE'}", "env: A: the variable NOPE is not set"),
        ("env: {A: '${NOPE}'}", "NOPE is not set"),
        ("env: {A: '${NOPE'}", "cannot read"),
        ("env: {A: [1]}", "env: A needs a text"),
        ("env: {A: }", "env: A needs a text"),
        ("env: [A]", "env needs a mapping"),
        ("just text", "needs a mapping of options"),
        ("[]", "needs a mapping of options"),
        ("", "needs a mapping of options"),
        ("- model: a\n- 5", "run 2: needs a mapping"),
        ("a: [", "not valid YAML"),
        ("model: a\nmodel: b", "line 2, column 1: the key 'model' occurs twice"),
        ("? [a]\n: 1", "unhashable key"),
        ("model_args: {a: 1, a: 2}", "the key 'a' occurs twice"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _applied(tmp_path, text, {})


def test_a_yaml_error_names_the_place_and_shows_no_value(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config_file(_write(tmp_path, "model: a\nmodel_args: {api_key: sk-secret-1: 2}\n"))
    assert "line 2, column" in str(caught.value)
    assert "sk-secret-1" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        read_config_file(str(tmp_path / "absent.yaml"))


def test_yaml_merge_keys_may_be_overridden(tmp_path: Path) -> None:
    text = "- &base {model: a, limit: 3}\n- {<<: *base, limit: 5}\n"
    assert dict(read_config_file(_write(tmp_path, text))[1].values) == {"model": "a", "limit": 5}

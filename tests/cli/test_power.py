from __future__ import annotations

import pytest

from lmms_eval.cli.main import main


def test_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        "difference to detect: 0.03",
        "standard deviations: 0.5, 0.5",
        "correlation: 0.5",
        "significance level: 0.05",
        "wanted power: 0.8",
        "minimum n: 2181",
    ]


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--std-a", "0.4"], 1396),
        (["--std_b", "0.3"], 785),
        (["--std-a", "0.5", "--std-b", "0.35", "--correlation", "0.2"], 2639),
        (["--alpha", "0.01", "--power", "0.9"], 4134),
        (["--effect_size", "0.05"], 785),
    ],
)
def test_parameters(arguments: list[str], needed: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", *arguments]) == 0
    assert f"minimum n: {needed}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "x"], "--alpha: invalid float value: 'x'"),
        (["--alpha", "1.5"], "alpha must lie between 0 and 1"),
        (["--effect-size", "0"], "effect size must be a number above 0"),
        (["--sigma", "1"], "unrecognized arguments: --sigma 1"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["power", *arguments]) == 2
    assert message in capsys.readouterr().err

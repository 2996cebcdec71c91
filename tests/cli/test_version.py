from __future__ import annotations

import platform

from lmms_eval.cli.main import main
from lmms_eval.cli.version import version_lines
from lmms_eval.utils.installed import package_version


def test_lines(capsys) -> None:
    assert main(["version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("lmms-eval ")
    assert lines[1] == f"Python {platform.python_version()}"
    assert lines[2].startswith("Git ")
    assert lines[3:] == [
        f"{name} {package_version(name)}"
        for name in ("torch", "accelerate", "transformers", "vllm")
        if package_version(name)
    ]


def test_the_same_from_both_spellings(capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.splitlines() == version_lines()


def test_an_absent_package_has_no_version() -> None:
    assert package_version("surely-no-such-package") is None
    assert package_version("pydantic")

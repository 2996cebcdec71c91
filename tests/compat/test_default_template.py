from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lmms_eval.compat.task_files import load_default_template_yaml
from tests.cases import for_each


def written(folder: Path, content: str, encoding: str = "utf-8") -> str:
    (folder / "_default_template_yaml").write_text(content, encoding=encoding)
    return str(folder / "utils.py")


def test_lines_with_functions_are_left_out(tmp_path: Path) -> None:
    content = "doc_to_text: !function utils.f\nname: ü # !function\nitems:\n  - !function utils.g\n  - 1e3\n"
    assert load_default_template_yaml(written(tmp_path, content)) == {"items": ["1e3"]}


@for_each(("content", "value"), [("", None), ("- yes\n", [True]), ("text", "text")])
def test_any_yaml_is_content(tmp_path: Path, content: str, value: object) -> None:
    assert load_default_template_yaml(written(tmp_path, content)) == value


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert load_default_template_yaml(written(tmp_path, "a: ü", "utf-8-sig")) == {"a": "ü"}


def test_damage_is_raised(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_default_template_yaml(tmp_path / "utils.py")
    with pytest.raises(yaml.YAMLError):
        load_default_template_yaml(written(tmp_path, "a: [1"))

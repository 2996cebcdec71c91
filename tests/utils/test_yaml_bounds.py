from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
import yaml

from lmms_eval.config.resolve import read_config_file
from lmms_eval.errors import ConfigError, TaskError
from lmms_eval.tasks.data.locate import hub_copy
from lmms_eval.tasks.yaml.loader import encode, parse_text
from lmms_eval.utils.yaml_bounds import load_bounded
from tests.cases import for_each

LISTS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12))
CIRCLE = "a: &a {b: [1, *a]}\n"
DEEP = "a: " + "[" * 50_000 + "]" * 50_000
BLOCKS = "".join(" " * n + "b:\n" for n in range(3_000))
COMPACT = "a:\n" + "- " * 50_000 + "b\n"
BOMBS = {"lists": LISTS, "merges": MERGES, "circle": CIRCLE, "deep": DEEP, "blocks": BLOCKS, "compact": COMPACT}
MESSAGE = "more than 1,000,000 values|an alias is inside the value that it names|nested more than 100 deep"


@for_each("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)])
def test_what_is_within_bounds(loader: type[yaml.SafeLoader]) -> None:
    text = "base: &base {a: 1, b: [2, 3]}\nother: {<<: *base, a: 4}\nagain: [*base, *base]\n"
    assert load_bounded(text, loader) == yaml.safe_load(text)
    assert load_bounded("", loader) is None
    with pytest.raises(yaml.YAMLError, match="another document"):
        load_bounded("a: 1\n---\nb: 2\n", loader)


@for_each("name", sorted(BOMBS))
def test_bombs_of_a_few_lines_are_refused(name: str, tmp_path: Path) -> None:
    tracemalloc.start()
    with pytest.raises(TaskError, match=rf"t\.yaml.*not valid task YAML: .*({MESSAGE})"):
        encode(parse_text(BOMBS[name], tmp_path / "t.yaml"))
    (tmp_path / "c.yaml").write_text(BOMBS[name])
    with pytest.raises(ConfigError, match=r"c\.yaml is not valid YAML"):
        read_config_file(str(tmp_path / "c.yaml"))
    (tmp_path / "README.md").write_text(f"---\n{BOMBS[name]}---\ntext")
    (tmp_path / "test.jsonl").write_text("{}\n")
    assert [*hub_copy(tmp_path, None, "t.yaml")] == ["test"]  # the card is passed over
    assert tracemalloc.get_traced_memory()[1] < 40 * 2**20
    tracemalloc.stop()

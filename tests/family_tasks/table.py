"""Table of the family's names: which task of these folders uses each, and which test runs it.

    python -m tests.family_tasks.table          # writes docs/families.md

``names.tsv`` lists the names that must be used. To add one, add a line there, use it in a task's ``utils.py`` (or, for
names of model plugins, name the test that runs one which does), and run this script.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
DOC = FOLDER.parents[1] / "docs" / "families.md"
TEST = "tests/compat/test_family_tasks.py::test_scores"
HEAD = f"""\
# Names of the family, and the tasks that show them

Task files and model plugins of the family import these names. Each is used by a task of
[tests/family_tasks](../tests/family_tasks), which `{TEST}[TASK]` runs to a score, or by the
plugin of the test that is named. The table is made by `python -m tests.family_tasks.table` from
[names.tsv](../tests/family_tasks/names.tsv) and held by a test. To add a name, add it there and use it in one of the
folders.

| section | name | shown by |
|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that tasks import."""

    section: str
    path: str
    """Dotted: the module and the name in it."""
    test: str = ""
    """The test that runs a plugin (or a task of its own) with it; empty: a task of these folders uses it."""

    @property
    def test_is_there(self) -> bool:
        """The named test exists, and its file imports the name or asks for it by its path."""
        file, _, function = self.test.partition("::")
        text = (FOLDER.parents[1] / file).read_text("utf-8")
        module, _, attribute = self.path.rpartition(".")
        places = (module, module.rpartition(".")[0], module.removeprefix("lmms_eval.models."))
        return f"def {function}(" in text and attribute in text and any(place in text for place in places)


def names() -> list[Name]:
    with (FOLDER / "names.tsv").open(encoding="utf-8", newline="") as file:
        return [Name(row["section"], row["name"], row["test"]) for row in csv.DictReader(file, delimiter="\t")]


def task_files() -> dict[str, Path]:
    """The file of every task, groups left out."""
    files = sorted(FOLDER.rglob("*.yaml"))
    return {file.stem: file for file in files if re.search(r'^"?task"?: "', file.read_text("utf-8"), re.MULTILINE)}


def uses() -> dict[str, list[str]]:
    """Tasks by the dotted names that their functions use."""
    found: dict[str, list[str]] = {}
    for task, file in task_files().items():
        text = file.read_text("utf-8") + (file.parent / "_default_template_yaml").read_text("utf-8")
        module = _Module(file.parent / "utils.py")
        for path in sorted(module.reached(re.findall(r"!function utils\.(\w+)", text))):
            found.setdefault(path, []).append(task)
    return found


class _Module:
    """The definitions of a module, and the names of this package that it imports."""

    def __init__(self, file: Path) -> None:
        tree = ast.parse(file.read_text("utf-8"))
        self._imported: dict[str, str] = {}
        self._defined: dict[str, ast.stmt] = {}
        self._always = [node for node in tree.body if isinstance(node, ast.Expr)]
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lmms_eval"):
                self._imported.update({one.asname or one.name: f"{node.module}.{one.name}" for one in node.names})
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                self._defined[node.name] = node
            elif isinstance(node, ast.Assign):
                self._defined.update({target.id: node for target in node.targets if isinstance(target, ast.Name)})

    def reached(self, functions: list[str]) -> set[str]:
        """Dotted names that functions use, also through others of the module; and those used at its import."""
        open_nodes: list[ast.stmt] = [*self._always, *(self._defined[name] for name in functions)]
        seen: set[str] = set()
        found: set[str] = set()
        while open_nodes:
            node = open_nodes.pop()
            for name in _read(node, self._imported):
                if name in self._defined and name not in seen:
                    seen.add(name)
                    open_nodes.append(self._defined[name])
                found |= {name} if name.startswith("lmms_eval.") else set()
        return found


def _read(node: ast.AST, imported: Mapping[str, str]) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in imported:
            yield f"{imported[each.value.id]}.{each.attr}"
        if isinstance(each, ast.Name):
            yield imported.get(each.id, each.id)


def table() -> str:
    used = uses()
    rows = []
    for name in names():
        shown = ", ".join(f"`{task}`" for task in ([name.test] if name.test else used[name.path][:3]))
        rows.append(f"| {name.section} | `{name.path.removeprefix('lmms_eval.')}` | {shown} |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    DOC.write_text(table(), encoding="utf-8")

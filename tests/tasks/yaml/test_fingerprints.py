"""Fingerprints of the code behind a task: whatever it imports or names in its folder counts, nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from lmms_eval.tasks.yaml.fingerprints import MAX_BYTES, hash_of_functions
from lmms_eval.tasks.yaml.functions import FunctionRef
from tests.cases import for_each


def write(folder: Path, **files: str) -> None:
    """Write files; ``__`` in a name is a slash, the ending of a module is left out."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ("" if "." in name else ".py"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")


def fingerprint(folder: Path, module: str = "utils", is_scoring: bool = False) -> str:
    return hash_of_functions([], [FunctionRef(f"{module}.f", str(folder / "task.yaml"))], is_scoring)


def changed(folder: Path, file: str, module: str = "utils") -> bool:
    """Tell whether a change of a file changes the fingerprint."""
    before = fingerprint(folder, module)
    path = folder / file
    content = path.read_bytes()
    path.write_bytes(content + b"\n# changed\n")
    after = fingerprint(folder, module)
    path.write_bytes(content)
    assert fingerprint(folder, module) == before  # the old content, the old fingerprint
    return after != before


IMPORTS = {
    "from .helper import score": "helper.py",
    "from . import helper": "helper.py",
    "from . import (\n    other,  # a comment, with a comma\n    helper as h,\n)": "helper.py",
    "from .\\\n  helper import score": "helper.py",
    "import helper": "helper.py",
    "import json, helper as h": "helper.py",
    "import json; import helper": "helper.py",
    "try: import helper\nexcept ImportError: helper = None": "helper.py",
    "def g():\n    from .helper import score": "helper.py",
    "from .parts import score": "parts/__init__.py",
    "from .parts import inner": "parts/inner.py",
    "from .parts.inner import score": "parts/inner.py",
    "import parts.inner": "parts/inner.py",
    "from ..shared.tools import score": "../shared/tools.py",
    "from ..beside import score": "../beside.py",
    "from lmms_eval.tasks.mine.helper import score": "helper.py",
    "from lmms_eval.tasks.shared import tools": "../shared/tools.py",
    "from shared.tools import score": "../shared/tools.py",
}


@for_each("statement", IMPORTS)
def test_every_way_to_import_a_module_of_the_tasks_own_counts(tmp_path: Path, statement: str) -> None:
    write(tmp_path, shared__tools="", beside="")
    write(tmp_path / "mine", utils=statement, helper="", other="", parts__inner="")
    (tmp_path / "mine" / "parts" / "__init__.py").touch()
    assert changed(tmp_path / "mine", IMPORTS[statement])


def test_what_is_imported_by_what_is_imported_counts_and_a_stranger_does_not(tmp_path: Path) -> None:
    write(
        tmp_path,
        utils="from .first import f",
        first="import second",
        second="from .utils import g",
        stranger="import utils",
    )
    assert changed(tmp_path, "second.py")
    assert not changed(tmp_path, "stranger.py")


FILES = {
    'open(HERE / "prompt.txt")': "prompt.txt",
    "open(HERE / 'prompts' / 'en.md')": "prompts/en.md",
    'open(HERE / "prompts/en.md")': "prompts/en.md",
    'open(HERE / f"prompts/{language}.md")': "prompts/en.md",
    'open(os.path.join(HERE, "prompts", name))': "prompts/en.md",
    'open("%s/prompts/%s.md" % (HERE, name)); x = "prompts/%s.md"': "prompts/en.md",
    'HERE.glob("*.txt")': "prompt.txt",
    'open(HERE.parent.parent / "above.json")': "../above.json",
    'open(HERE / "../above.json")': "../above.json",
    'importlib.import_module(f".{name}", __package__); "loaded.py"': "loaded.py",
    'yaml.safe_load(open(HERE / "_settings_yaml"))': "_settings_yaml",
    'Image.open(HERE / "legend.png")': "legend.png",
}


@for_each("code", FILES)
def test_every_way_to_name_a_file_of_the_tasks_folder_counts(tmp_path: Path, code: str) -> None:
    write(tmp_path, **{"above.json": "{}"})
    folder = tmp_path / "mine"
    write(folder, utils=code, loaded="", **{"prompt.txt": "a", "prompts__en.md": "b", "legend.png": "png"})
    (folder / "_settings_yaml").write_text("a: 1", encoding="utf-8")
    assert changed(folder, FILES[code])


def test_a_file_that_only_the_settings_of_the_task_name_counts(tmp_path: Path) -> None:
    write(tmp_path, utils="def f(doc, kwargs): return open(kwargs['file']).read()", **{"texts__a.txt": "a"})
    ref = FunctionRef("utils.f", str(tmp_path / "task.yaml"))
    stated = [ref, {"default": {"file": "texts/a.txt"}}]
    before = hash_of_functions([], stated)
    (tmp_path / "texts" / "a.txt").write_text("b", encoding="utf-8")
    assert hash_of_functions([], stated) != before


def test_what_a_run_writes_into_the_folder_and_what_is_data_there_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, utils='names = ["out", "*.json", "prompts", "notes.txt"]')
    write(
        tmp_path,
        **{"prompts__en.md": "b", "prompts__README.md": "", "prompts__big.txt": "x" * (MAX_BYTES + 1)},
    )
    before = fingerprint(tmp_path)
    write(
        tmp_path,
        **{
            "out__m__.runs__k__run.json": "{}", "out__20260101_samples_t.jsonl": "{}", "20260101_results.json": "{}",
            "run.log": "", "prompts__a.png": "", "prompts__d.parquet": "", "prompts__README.md": "changed",
            "prompts__big.txt": "y" * (MAX_BYTES + 1), "README.md": "",
        },
    )  # fmt: skip
    assert fingerprint(tmp_path) == before
    write(tmp_path, **{"prompts__de.md": "neu"})
    assert fingerprint(tmp_path) != before


def test_installed_packages_do_not_count_but_the_functions_own_does(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "site-packages"
    write(site, mine__tasks__utils="from mine.common import f\nimport other", mine__common="", other="")
    folder = site / "mine" / "tasks"
    assert changed(folder, "../common.py")
    assert not changed(folder, "../../other.py")


def test_the_fingerprint_is_the_same_wherever_the_folder_lies_and_whenever_it_was_written(tmp_path: Path) -> None:
    for place in ("here", "there"):
        write(tmp_path / place, utils='import helper\nopen("p.txt")', helper="x = 1", **{"p.txt": "text"})
    os.utime(tmp_path / "there" / "p.txt", (1, 1))
    assert fingerprint(tmp_path / "here") == fingerprint(tmp_path / "there")


def test_of_this_package_the_benchmarks_folder_counts_for_prompts_and_what_benchmarks_share_for_scores() -> None:
    from lmms_eval.tasks.mmbench import utils
    from lmms_eval.tasks.yaml import fingerprints

    seen: dict[bool, set[str]] = {}
    for is_scoring in (False, True):
        code = fingerprints._Code(is_scoring, frozenset())
        seen[is_scoring] = {Path(path).name for path in code._reached(frozenset({str(Path(utils.__file__).resolve())}))}
    assert {"utils.py", "circular.py"} <= seen[False]
    assert "estimates.py" not in seen[False]
    assert {"circular.py", "estimates.py", "answers.py"} <= seen[True]


def test_nothing_is_imported_for_a_fingerprint(tmp_path: Path) -> None:
    write(tmp_path, utils="def f():\n    import helper", helper="raise SystemExit('imported')")
    program = (
        "import sys; from lmms_eval.tasks.yaml.fingerprints import hash_of_functions\n"
        "from lmms_eval.tasks.yaml.functions import FunctionRef\n"
        f"print(hash_of_functions([], [FunctionRef('utils.f', {str(tmp_path / 'task.yaml')!r})]))\n"
        "assert 'helper' not in sys.modules and 'utils' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == fingerprint(tmp_path)


def test_tasks_that_share_their_code_read_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, utils="import helper", helper="")
    first = fingerprint(tmp_path)
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_kw: pytest.fail("read again"))
    assert fingerprint(tmp_path) == first

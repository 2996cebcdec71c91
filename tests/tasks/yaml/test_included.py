"""Task folders below an included one are imported by the family's name, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "task: t\ndataset_path: json\n"
SHOW = """
import sys
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.yaml.functions import resolve_all
from lmms_eval.tasks.yaml.loader import YamlReader
catalogue = Catalogue(sys.argv[2:], include_defaults=False)
made = resolve_all(YamlReader().read(catalogue.tasks["t"].file))
print(eval(sys.argv[1]))
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def shown(what: str, *folders: Path) -> str:
    """Print an expression over the functions ``made`` of the task ``t`` of these folders."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, what, *map(str, folders)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("is_package", [False, True])
def test_a_folder_imports_itself_and_its_neighbours(tmp_path: Path, is_package: bool) -> None:
    if is_package:
        write(tmp_path, "one/__init__.py", "")
        write(tmp_path, "two/__init__.py", "")
    write(tmp_path, "two/deep/more.py", "FAR = 'far'\n")
    write(tmp_path, "two/helper.py", "from lmms_eval.tasks.two.deep import more\nNEAR = ['near', more.FAR]\n")
    write(tmp_path, "shared_utils.py", "ROOT = 'root'\n")
    write(tmp_path, "one/own.py", "STATE = []\n")
    write(
        tmp_path,
        "one/utils.py",
        "import lmms_eval.tasks.one.own as own\nfrom lmms_eval.tasks.one.own import STATE\n"
        "from lmms_eval.tasks.two.helper import NEAR\nfrom lmms_eval.tasks import shared_utils\n"
        "def f():\n    from lmms_eval.tasks.one import utils\n"
        "    return [*NEAR, shared_utils.ROOT, own.STATE is STATE, utils.f is f]\n",
    )
    write(tmp_path, "one/t.yaml", f"{HEAD}first: !function utils.f\nsecond: !function lmms_eval.tasks.one.utils.f\n")
    said = shown("made['first'](), made['first'] is made['second'], made['first'].__module__", tmp_path)
    assert said == "(['near', 'far', 'root', True, True], True, 'lmms_eval.tasks.one.utils')"


@pytest.mark.parametrize("place", ["bench", "more/bench", "checkout/lmms_eval/tasks/bench", "."])
def test_the_included_folder_may_be_the_tasks_folder_or_stand_above(tmp_path: Path, place: str) -> None:
    root = tmp_path / "bench"
    write(root, f"{place}/helper.py", "VALUE = 3\n")
    write(root, f"{place}/utils.py", "from lmms_eval.tasks.bench.helper import VALUE\ndef f():\n    return VALUE\n")
    write(root, f"{place}/t.yaml", f"{HEAD}f: !function utils.f\n")
    assert shown("made['f']()", root) == "3"


def test_packaged_names_win_and_what_the_package_lacks_is_found(tmp_path: Path) -> None:
    write(tmp_path, "megabench/utils.py", "def f():\n    return 'included'\n")
    write(tmp_path, "megabench/image_video_utils.py", "def g():\n    return 'included'\n")
    write(
        tmp_path,
        "megabench/t.yaml",
        f"{HEAD}own: !function utils.f\ng: !function lmms_eval.tasks.megabench.image_video_utils.g\n"
        "packaged: !function lmms_eval.tasks.megabench.utils.process_results\n",
    )
    said = shown("made['own'](), made['g'](), made['packaged'].__code__.co_filename", tmp_path)
    assert said.startswith("('included', 'included', '") and "lmms_eval/tasks/megabench/utils.py" in said


def test_the_first_of_two_included_folders_is_the_one_named_last(tmp_path: Path) -> None:
    write(tmp_path, "a/x/helper.py", "VALUE = 'a'\n")
    write(tmp_path, "a/x/only.py", "VALUE = 'only'\n")
    write(tmp_path, "b/x/helper.py", "VALUE = 'b'\n")
    write(
        tmp_path,
        "b/x/utils.py",
        "from lmms_eval.tasks.x import helper, only\ndef f():\n    return helper.VALUE, only.VALUE\n",
    )
    write(tmp_path, "b/x/t.yaml", f"{HEAD}f: !function utils.f\n")
    assert shown("made['f']()", tmp_path / "a", tmp_path / "b") == "('b', 'only')"


def test_a_scoring_process_finds_the_same_modules(tmp_path: Path) -> None:
    write(tmp_path, "x/helper.py", "VALUE = 3.0\n")
    write(
        tmp_path,
        "x/utils.py",
        "from lmms_eval.tasks.x.helper import VALUE\ndef process_results(doc, results):\n    return {'acc': VALUE}\n",
    )
    write(
        tmp_path,
        "x/t.yaml",
        f"{HEAD}test_split: test\ndoc_to_text: 'q'\ndoc_to_target: 'a'\n"
        "process_results: !function utils.process_results\n"
        "metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]\n",
    )
    first = (
        "import json, sys\nfrom lmms_eval.api.task import TaskOptions\n"
        "from lmms_eval.tasks.catalogue import Catalogue\nfrom lmms_eval.tasks.selection import select_tasks\n"
        "print(json.dumps(select_tasks(['t'], Catalogue([sys.argv[1]], (), False), TaskOptions()).tasks[0].spec()))"
    )
    second = (
        "import json, sys\nfrom lmms_eval.tasks.selection import build_from_spec\n"
        "print(build_from_spec(json.loads(sys.argv[1])).name)"
    )
    spec = subprocess.run([sys.executable, "-c", first, str(tmp_path)], capture_output=True, text=True, check=True)
    built = subprocess.run([sys.executable, "-c", second, spec.stdout], capture_output=True, text=True, check=False)
    assert built.stdout.strip() == "t", built.stderr


def test_a_package_whose_init_fails_does_not_lose_its_functions(tmp_path: Path) -> None:
    write(tmp_path, "x/__init__.py", "raise RuntimeError('not for import')\n")
    write(tmp_path, "x/utils.py", "def f():\n    return 1\n")
    write(tmp_path, "x/t.yaml", f"{HEAD}f: !function utils.f\n")
    assert shown("made['f']()", tmp_path) == "1"


def test_without_an_included_folder_no_finder_is_installed() -> None:
    code = (
        "import sys\nbefore = list(sys.meta_path)\nfrom lmms_eval.tasks.catalogue import Catalogue\n"
        "Catalogue()\nassert sys.meta_path == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

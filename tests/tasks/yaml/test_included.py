"""Task folders below an included one are imported by the family's name, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import for_each

HEAD = "task: t\ndataset_path: json\n"
SHOW = """
import sys
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.yaml.functions import FunctionRef, resolve_all
from lmms_eval.tasks.yaml.loader import YamlReader
from lmms_eval import tasks
PACKAGED = tasks.__path__[0]
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


@for_each("is_package", [False, True])
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


@for_each("place", ["bench", "more/bench", "checkout/lmms_eval/tasks/bench", "."])
def test_the_included_folder_may_be_the_tasks_folder_or_stand_above(tmp_path: Path, place: str) -> None:
    root = tmp_path / "bench"
    write(root, f"{place}/helper.py", "VALUE = 3\n")
    write(root, f"{place}/utils.py", "from lmms_eval.tasks.bench.helper import VALUE\ndef f():\n    return VALUE\n")
    write(root, f"{place}/t.yaml", f"{HEAD}f: !function utils.f\n")
    assert shown("made['f']()", root) == "3"


def test_the_tree_comes_first_and_what_it_lacks_is_the_packages(tmp_path: Path) -> None:
    write(tmp_path, "megabench/utils.py", "def f():\n    return 'included'\n")
    write(tmp_path, "megabench/image_video_utils.py", "def g():\n    return 'included'\n")
    write(
        tmp_path,
        "megabench/t.yaml",
        f"{HEAD}own: !function utils.f\ng: !function lmms_eval.tasks.megabench.image_video_utils.g\n"
        "other: !function lmms_eval.tasks.megabench.utils.f\n"
        "packaged: !function lmms_eval.tasks.megabench.report.report\n",
    )
    said = shown("made['own'] is made['other'], made['g'](), made['packaged'].__code__.co_filename", tmp_path)
    assert said.startswith("(True, 'included', '") and "lmms_eval/tasks/megabench/report.py" in said


IMPORTS = {
    "from a module": "from lmms_eval.tasks.chartqa.utils import VALUE\ndef f():\n    return VALUE\n",
    "from a folder": "from lmms_eval.tasks.chartqa import utils\ndef f():\n    return utils.VALUE\n",
    "from the tasks": "from lmms_eval.tasks import chartqa\nimport lmms_eval.tasks.chartqa.utils\n"
    "def f():\n    return chartqa.utils.VALUE\n",
    "under a name": "import lmms_eval.tasks.chartqa.utils as utils\ndef f():\n    return utils.VALUE\n",
    "the whole path": "import lmms_eval.tasks.chartqa.utils\ndef f():\n"
    "    return lmms_eval.tasks.chartqa.utils.VALUE\n",
    "all names": "from lmms_eval.tasks.chartqa.utils import *\ndef f():\n    return VALUE\n",
    "when it is called": "def f():\n    from lmms_eval.tasks.chartqa.utils import VALUE\n    return VALUE\n",
    "from a helper": "from lmms_eval.tasks.other.deep.helper import VALUE\ndef f():\n    return VALUE\n",
}
"""Code of a folder that takes ``VALUE`` of the tree's ``chartqa``, a name that the package has too."""


@for_each("is_package", [False, True])
@for_each("form", IMPORTS)
def test_code_of_a_tree_gets_the_trees_module_where_the_package_has_the_name(
    form: str, is_package: bool, tmp_path: Path
) -> None:
    for folder in ("chartqa", "other", "other/deep") if is_package else ():
        write(tmp_path, f"{folder}/__init__.py", "")
    write(tmp_path, "chartqa/utils.py", "from .more import VALUE\n" if is_package else "VALUE = 'tree'\n")
    write(tmp_path, "chartqa/more.py", "VALUE = 'tree'\n")
    write(tmp_path, "chartqa/chartqa.yaml", "dataset_path: json\n")
    write(tmp_path, "other/deep/helper.py", "from lmms_eval.tasks.chartqa.utils import VALUE\n")
    write(tmp_path, "other/utils.py", IMPORTS[form])
    write(
        tmp_path,
        "other/t.yaml",
        f"{HEAD}f: !function utils.f\n",
    )
    ours = "__import__('lmms_eval.tasks.chartqa.utils', fromlist=['x']).__file__.split('lmms_eval')[-1]"
    assert shown(f"made['f'](), {ours}", tmp_path) == "('tree', '/tasks/chartqa/utils.py')"


def test_packaged_code_keeps_its_own_modules_beside_a_tree_of_the_same_names(tmp_path: Path) -> None:
    write(tmp_path, "chartqa/utils.py", "def f():\n    from lmms_eval.tasks.chartqa import utils\n    return utils.f\n")
    write(tmp_path, "chartqa/t.yaml", f"{HEAD}f: !function utils.f\n")
    ours = "FunctionRef('utils.process_results', PACKAGED + '/chartqa/chartqa.yaml').resolve()"
    said = shown(
        f"made['f']() is made['f'], {ours}.__module__, {ours}.__code__.co_filename == PACKAGED + '/chartqa/utils.py'",
        tmp_path,
    )
    assert said == "(True, 'lmms_eval.tasks.chartqa.utils', True)"


def test_the_packages_helpers_stay_its_own(tmp_path: Path) -> None:
    write(tmp_path, "_task_utils/mcq_extract.py", "raise RuntimeError('not for import')\n")
    write(tmp_path, "_task_utils/of_the_tree.py", "VALUE = 3\n")
    write(
        tmp_path,
        "x/utils.py",
        "from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer\n"
        "from lmms_eval.tasks._task_utils.of_the_tree import VALUE\n"
        "def f():\n    return extract_mcq_answer('B'), VALUE\n",
    )
    write(tmp_path, "x/t.yaml", f"{HEAD}f: !function utils.f\n")
    assert shown("made['f']()", tmp_path) == "('B', 3)"


def test_each_of_two_trees_finds_its_own_modules(tmp_path: Path) -> None:
    for tree in ("a", "b"):
        write(tmp_path, f"{tree}/x/helper.py", f"VALUE = '{tree}'\n")
        write(tmp_path, f"{tree}/chartqa/helper.py", f"VALUE = '{tree}'\n")
        write(
            tmp_path,
            f"{tree}/y{tree}/utils.py",
            "from lmms_eval.tasks.x.helper import VALUE\nfrom lmms_eval.tasks.chartqa import helper\n"
            "def f():\n    return VALUE + helper.VALUE\n",
        )
    write(tmp_path, "a/ya/t.yaml", f"{HEAD}f: !function utils.f\ng: !function lmms_eval.tasks.yb.utils.f\n")
    assert shown("made['f'](), made['g']()", tmp_path / "a", tmp_path / "b") == "('aa', 'bb')"


@pytest.mark.parametrize("option", ["include_path", "folder", "file"])
def test_a_single_folder_of_a_packaged_name_finds_itself(option: str, tmp_path: Path) -> None:
    write(tmp_path, "chartqa/utils.py", "from lmms_eval.tasks.chartqa.more import f\n")
    write(tmp_path, "chartqa/more.py", "def f(doc):\n    return 'tree'\n")
    write(
        tmp_path,
        "chartqa/t.yaml",
        f"{HEAD}test_split: test\ndoc_to_text: !function utils.f\ndoc_to_target: 'a'\n"
        "metric_list: [{metric: exact_match}]\n",
    )
    names = {"include_path": "t", "folder": str(tmp_path / "chartqa"), "file": str(tmp_path / "chartqa/t.yaml")}
    code = (
        "import sys\nfrom lmms_eval.api.task import TaskOptions\nfrom lmms_eval.tasks.catalogue import Catalogue\n"
        "from lmms_eval.tasks.selection import build_from_spec, select_tasks\n"
        "made = select_tasks([sys.argv[1]], Catalogue(sys.argv[2:]), TaskOptions()).tasks[0]\n"
        "print(*(task.config.doc_to_text({}) for task in (made, build_from_spec(made.spec()))))"
    )
    given = [str(tmp_path / "chartqa")] if option == "include_path" else []
    done = subprocess.run(
        [sys.executable, "-c", code, names[option], *given], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "tree tree", done.stderr


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
        "import sys, lmms_eval\nbefore = list(sys.meta_path)\nfrom lmms_eval.tasks.catalogue import Catalogue\n"
        "Catalogue()\nassert sys.meta_path == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""What stands beside the code: versions, files of the hosting service, lean requirements, checks of distributions."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from lmms_eval.compare.gate import read_policy
from lmms_eval.models.building import LOCAL_MODELS_NEED
from lmms_eval.tasks.manager import TaskManager
from release import constraints
from release.check import Step, steps, table, taken
from release.constraints import ENGINES, OLDEST, check, merged, pins, promised
from release.contents import IN_WHEEL, WHEEL_BYTES, wheel_problems
from tests import forks
from tests.cases import for_each
from tests.test_dependencies import PROJECT, ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
NOT_LEAN = {"openai", *LOCAL_MODELS_NEED}


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def commands(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"].values()
    return [step["run"].strip() for job in jobs for step in job["steps"] if "run" in step]


def test_the_version_stands_in_one_place_and_is_repeated_rightly():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    heading = re.search(r"^## \[?(\d+\.\d+\.\d+)\]?", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert heading and PROJECT["version"].startswith(heading[1])
    sources = [path for path in (ROOT / "lmms_eval").rglob("*.py") if "node_modules" not in path.parts]
    assert not [path for path in sources if PROJECT["version"] in path.read_text(encoding="utf-8")]


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert parts and parts <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert re.search(r"^## \[?\d+\.\d+\.\d+\]? - (unreleased|\d{4}-\d\d-\d\d)$", text, re.MULTILINE)


@for_each("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_make_targets_that_exist(workflow: Path):
    called = commands(workflow)
    assert called
    for command in called:
        found = re.fullmatch(r"make ([a-z-]+)", command)
        assert found, f"{command!r}: hosted checks call make targets alone"
        assert found[1] in targets()


def test_workflows_call_all_that_the_one_truth_calls():
    truth = set(re.findall(r"^make ([a-z-]+)\b", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.MULTILINE))
    assert truth
    assert {f"make {target}" for target in truth} <= {line for workflow in WORKFLOWS for line in commands(workflow)}


def test_the_matrix_names_the_pythons_of_the_metadata():
    jobs = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8"))["jobs"]
    listed = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == listed


def test_hooks_are_local_and_run_what_lint_runs():
    lint = (ROOT / "Makefile").read_text(encoding="utf-8")
    [repository] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        assert hook["entry"].split()[0].replace(".venv/bin", "$(BIN)") in lint


def test_forms_for_issues_have_what_the_service_asks_for():
    forms = [path for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert forms
    for path in forms:
        form: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert form["name"] and form["description"] and form["body"]
        assert all(part["attributes"]["label"] for part in form["body"])


def test_the_example_of_a_gate_fits_the_commands():
    example = yaml.safe_load((ROOT / "examples/gate_workflow.yml").read_text(encoding="utf-8"))
    run = " ".join(step["run"] for step in example["jobs"]["gate"]["steps"] if "run" in step)
    policy = read_policy(ROOT / "examples/gate_policy.yml")
    asked = re.search(r"--tasks (\S+)", run)
    assert asked
    names = asked[1].split(",")
    assert set(names) <= set(TaskManager().all_tasks)
    assert len(policy.tasks) == len(names)
    for command, flags in (
        ("gate", {"--policy", "--markdown", "--junit"}),
        ("eval", {"--log_samples", "--output_path"}),
    ):
        help_text = forks.run("-m", "lmms_eval", command, "--help").stdout
        assert flags <= set(re.findall(r"--\w+", run)) & set(re.findall(r"--\w+", help_text))


def test_lean_requirements_are_all_but_the_heavy_ones():
    lines = (ROOT / "lmms_eval/requirements-lean.txt").read_text(encoding="utf-8").splitlines()[1:]
    heavy = [line for line in PROJECT["dependencies"] if re.match(r"[\w-]+", line)[0] in NOT_LEAN]  # type: ignore[index]
    assert len(heavy) == len(NOT_LEAN)
    assert lines == [line for line in PROJECT["dependencies"] if line not in heavy]


def test_the_notice_names_what_is_bundled():
    text = " ".join((ROOT / "NOTICE").read_text(encoding="utf-8").split())
    package = ROOT / "lmms_eval"
    bundled = [path.parent for path in package.rglob("*.safetensors")]
    bundled += [path for path in package.glob("tasks/*/demo") if path.is_dir()]
    assert len(bundled) > 4
    for path in bundled:
        assert str(path.relative_to(ROOT)) in text
    licences = (package / "viewer/bundle/LICENSES.txt").read_text(encoding="utf-8")
    named = re.findall(r"^(@?[a-z][\w./-]*) \d+\.\d+\.\d+$", licences, re.MULTILINE)
    assert named
    assert all(name in text for name in named)
    files = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    assert all((ROOT / name).is_file() for name in files)


NAMES = [
    re.sub(r"\[\^/\]\+", "1.0", pattern).replace("\\", "").replace(".+", "x").replace(".*", "x") for pattern in IN_WHEEL
]


def test_a_wheel_as_it_should_be_has_no_problems():
    assert wheel_problems(NAMES, WHEEL_BYTES) == []


@for_each(
    ("names", "size", "says"),
    [
        (NAMES[1:], 1, "missing: lmms_eval/py"),
        ([*NAMES, "tests/test_x.py"], 1, "should not be there: tests/test_x.py"),
        ([*NAMES, "lmms_eval/viewer/web/node_modules/x.js"], 1, "node_modules"),
        ([*NAMES, "lmms_eval/a.pyc"], 1, "a.pyc"),
        (
            [*NAMES, "lmms_eval/tasks/mmmu/example.png"],
            1,
            "NOTICE does not state the origin of lmms_eval/tasks/mmmu/ex",
        ),
        ([*NAMES, "stray.py"], 1, "outside of the package"),
        (NAMES, WHEEL_BYTES + 1, "bytes are more than"),
    ],
)
def test_a_wheel_is_refused_for(names: list[str], size: int, says: str):
    assert says in "; ".join(wheel_problems(names, size))


def test_steps_that_fail_are_told_and_the_others_run(capsys: pytest.CaptureFixture[str]):
    good = taken(Step("good", lambda: [[sys.executable, "-c", "print('done')"]]))
    bad = taken(Step("bad", lambda: [[sys.executable, "-c", "import sys; print('why'); sys.exit(3)"]]))
    lost = taken(Step("lost", lambda: [["/no/such/program"]]))
    assert [one.passed for one in (good, bad, lost)] == [True, False, False]
    noisy = "import sys; print('\\x1b[32mdone\\x1b[0m'); print('WARNING', file=sys.stderr)"
    assert taken(Step("noisy", lambda: [[sys.executable, "-c", noisy]])).says == good.says == "done"
    assert bad.says == "exit code 3"
    assert "why" in capsys.readouterr().out
    assert [line.split()[:2] for line in table([good, bad]).splitlines()] == [["passed", "good"], ["FAILED", "bad"]]


def test_constraints_are_joined_without_what_belongs_to_a_build_of_torch():
    together = [
        "torch==2.13.0+cpu",
        "nvidia-cublas==13.1 ; sys_platform == 'linux'",
        "pillow==13.0.0",
        "a==1 ; python_version < '3.14'",
    ]
    together += ["a==2 ; python_version >= '3.14'", "nvidia-ml-py==13.6"]
    lines = merged([together, ["pillow==12.0.0", "trackio==0.43.0", "a==3"]])
    assert lines == [
        "a==1; python_version < '3.14'", "a==2; python_version >= '3.14'", "nvidia-ml-py==13.6", "pillow==13.0.0",
        "torch==2.13.0", "trackio==0.43.0",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="pins no version"):
        merged([["torch>=2"]])


PYTHONS = ("3.11.0", "3.11.2", "3.11.4", "3.11.5", "3.11.14", "3.12.0", "3.12.12", "3.13.0", "3.13.9")


@for_each("python", PYTHONS)
def test_constraints_install_on_every_python_that_the_package_takes(python: str):
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)
    pinned = pins(python)
    assert len({canonicalize_name(name) for name in pinned}) == len(pinned)
    looked_at, wrong = 0, []
    for name, version in pinned.items():
        try:
            metadata = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if version == metadata["Version"].partition("+")[0]:
            looked_at += 1
            if not SpecifierSet(metadata["Requires-Python"] or "").contains(python):
                wrong.append(f"{name}=={version}: for Python {metadata['Requires-Python']}")
    assert not wrong
    assert looked_at > 40  # those that are installed here


def test_constraints_are_resolved_from_the_first_python_on():
    assert PROJECT["requires-python"] == f">={OLDEST.removesuffix('.0')}"
    assert promised(PROJECT) == ["3.11.0", "3.12", "3.13"]


def test_every_extra_but_engines_and_those_apart_has_its_packages_among_the_constraints():
    for extra, lines in PROJECT["optional-dependencies"].items():
        if extra in ENGINES:
            continue
        for python in promised(PROJECT):
            asked = [Requirement(line) for line in lines]
            names = [
                canonicalize_name(one.name)
                for one in asked
                if one.name != PROJECT["name"]
                and (one.marker is None or one.marker.evaluate({"python_version": python[:4], "sys_platform": "linux"}))
            ]
            assert not {*names} - {*pins(python)}, f"{extra} on Python {python}"


def test_a_constraint_that_is_there_twice_is_refused(tmp_path: Path):
    file = tmp_path / "constraints.txt"
    file.write_text("# head\na==1; python_version < '3.12'\na==2; python_version >= '3.12'\n")
    assert (pins("3.11.0", file), pins("3.13", file)) == ({"a": "1"}, {"a": "2"})
    file.write_text("a==1\na==2; python_version >= '3.12'\n")
    assert pins("3.11.0", file) == {"a": "1"}
    with pytest.raises(ValueError, match="gives two versions of a for Python 3\\.12"):
        pins("3.12", file)


UV = """\
import os, pathlib, sys
words = sys.argv[1:]
pathlib.Path(os.environ["WORDS"]).write_text("\\n".join(words))
if os.environ["SOLVES"] == "":
    sys.exit("no solution found")
pathlib.Path(words[words.index("-o") + 1]).write_text(os.environ["SOLVES"])
"""


def test_the_check_of_the_constraints_resolves_for_a_python_and_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    uv, words = tmp_path / "uv", tmp_path / "words"
    uv.write_text(f"#!{sys.executable}\n{UV}")
    uv.chmod(0o755)
    monkeypatch.setattr(constraints, "BUILD", tmp_path / "build")
    monkeypatch.setenv("WORDS", str(words))
    monkeypatch.setenv("SOLVES", "torch==2.13.0+cpu\nnvidia-cublas==13.1\nnumpy==2.4.6\n")
    assert check(uv, "3.12", ["otlp"]) == 3
    given = words.read_text().splitlines()
    assert given[:2] == ["pip", "compile"] and {"--extra=otlp", "--only-binary=numpy"} <= {*given}
    assert given[given.index("--python-version") + 1] == "3.12"
    assert "--only-binary=jieba" not in given  # it is published as source alone
    monkeypatch.setenv("SOLVES", "numpy==2.4.5\nnewcomer==1.0\n")
    with pytest.raises(ValueError, match=r"Python 3\.12: not in constraints\.txt: numpy==2\.4\.5, newcomer==1\.0"):
        check(uv, "3.12", [])
    monkeypatch.setenv("SOLVES", "")
    with pytest.raises(subprocess.CalledProcessError):
        check(uv, "3.12", [])


def test_a_release_checks_the_constraints_on_every_python():
    commands = [[str(word) for word in one] for step in steps(False)[:6] for one in step.commands()]
    assert [sys.executable, "-m", "release.constraints", "--check"] in commands


def test_constraints_are_allowed_by_what_the_package_asks_for():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    versions = {(canonicalize_name(pin.name), str(next(iter(pin.specifier)).version)) for pin in pins}
    extras = PROJECT["optional-dependencies"]
    asked = [
        Requirement(line) for line in [*PROJECT["dependencies"], *(line for part in extras.values() for line in part)]
    ]
    wrong = [
        f"{name} {version}: {one}"
        for one in asked
        for name, version in versions
        if canonicalize_name(one.name) == name and version not in one.specifier
    ]
    assert not wrong

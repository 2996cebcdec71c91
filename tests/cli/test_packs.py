from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.cli import packs as command
from lmms_eval.cli.completion.command import current_index, suggest
from lmms_eval.cli.main import main
from lmms_eval.tasks.catalogue import Catalogue
from lmms_eval.tasks.packs.store import packs
from lmms_eval.tasks.selection import choose
from tests.tasks.packs.kit import CODE, PLAIN, ROWS, TASKS, index_of, wheel

Words = Callable[..., str]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "store"
    monkeypatch.setenv("LMMS_EVAL_PACKS", str(folder))
    for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Words:
    """Run a command that succeeds, and return what it prints."""

    def run(*words: str) -> str:
        assert main(list(words)) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Words:
    """Run a command that fails with exit code 2 and one line, and return this line."""

    def run(*words: str) -> str:
        assert main(list(words)) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1, captured
        return captured.err

    return run


def left(store: Path) -> list[str]:
    """Everything in the folder of the packs, without what is inside a pack."""
    return sorted(path.relative_to(store).as_posix() for path in [*store.glob("*"), *store.glob("*/*")])


def test_a_wheel_is_listed_described_and_removed(tmp_path: Path, store: Path, said: Words) -> None:
    out = said("packs", "add", str(wheel(tmp_path)))
    assert (
        out.splitlines()[0] == "kitchen 1.0: 2 tasks, 1 groups, 1 tags, licence: kitchen-1.0.dist-info/licenses/LICENSE"
    )
    assert "1 of its tasks bring Python code" in out and "lmms-eval packs trust kitchen" in out
    (pack,) = packs()
    assert (pack.name, pack.version, pack.package, pack.is_trusted) == ("kitchen", "1.0", "kitchen", False)
    kept = {
        path.relative_to(store / pack.folder).as_posix() for path in (store / pack.folder).rglob("*") if path.is_file()
    }
    assert kept == {".use", *TASKS, "kitchen-1.0.dist-info/licenses/LICENSE"} - {"kitchen/__init__.py"}
    assert "may not run" in said("packs", "list")
    assert json.loads(said("packs", "list", "--json"))[0]["sha256"] == pack.sha256
    described = said("packs", "describe", "kitchen", "--no-check")
    assert f"sha256 {pack.sha256}" in described and "1 tasks bring Python code, which may not run" in described
    assert said("packs", "remove", "kitchen") == "kitchen 1.0 is removed\n"
    assert left(store) == ["packs.json"] and "no packs in" in said("packs", "list")


def test_code_runs_only_after_consent(
    tmp_path: Path, said: Words, refused: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    said("packs", "add", str(wheel(tmp_path)))
    assert "kit_plain" in said("tasks", "list") and "kit_coded" not in said("tasks", "list")
    assert "brings Python code of its own" in refused("tasks", "describe", "kit_coded")
    assert said("packs", "trust", "kitchen") == "kitchen: its code may run\n"
    assert "kit_coded" in said("tasks", "list")
    assert said("packs", "trust", "kitchen", "--revoke") == "kitchen: its code may not run any more\n"
    assert "kit_coded" not in said("tasks", "list")
    for answer, is_trusted in (("y\n", True), ("\n", False)):
        said("packs", "remove", "kitchen")
        monkeypatch.setattr(command.sys.stdin, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(command.sys.stdin, "readline", lambda answer=answer: answer, raising=False)
        said("packs", "add", str(wheel(tmp_path)))
        assert packs()[0].is_trusted is is_trusted
    said("packs", "remove", "kitchen")
    assert "bring Python code" not in said("packs", "add", str(wheel(tmp_path)), "--trust")
    assert packs()[0].is_trusted


HIDDEN = {
    "escaped": "task: t\ndoc_to_text: !%66unction utils.text\n",
    "handle": "%TAG !f! !func\n---\ntask: t\ndoc_to_text: !f!tion utils.text\n",
    "verbatim": "task: t\ndoc_to_text: !<!function> utils.text\n",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_code_that_a_file_hides_needs_consent_too(text: str, tmp_path: Path, said: Words, refused: Words) -> None:
    files = {"kitchen/tasks/t.yaml": text, "kitchen/tasks/utils.py": "raise SystemExit('ran')\n"}
    assert "1 of its tasks bring Python code" in said("packs", "add", str(wheel(tmp_path, files=files)))
    assert "brings Python code" in refused("tasks", "describe", "t")


def test_a_folder_is_used_where_it_is(tmp_path: Path, said: Words, refused: Words) -> None:
    with zipfile.ZipFile(wheel(tmp_path)) as opened:
        opened.extractall(tmp_path / "checkout")
    assert "packs add" in refused("packs", "add", str(tmp_path / "checkout"))
    assert said("packs", "add", str(tmp_path / "checkout"), "--name", "mine", "--trust").startswith("mine: 2 tasks")
    assert packs()[0].package == "kitchen"
    (tmp_path / "checkout/kitchen/tasks/new.yaml").write_text(PLAIN.format(name="kit_new"))
    assert "kit_new" in said("tasks", "list")
    assert "not from a package index" in refused("packs", "update", "mine")
    said("packs", "remove", "mine")
    assert (tmp_path / "checkout/kitchen/tasks/new.yaml").is_file()


def test_two_versions_at_once_need_two_names(tmp_path: Path, said: Words, refused: Words) -> None:
    first, second = wheel(tmp_path, "1.0"), wheel(tmp_path, "2.0")
    said("packs", "add", str(first), "--trust")
    message = refused("packs", "add", str(second))
    assert "kitchen is here already, 1.0 from kitchen-1.0-py3-none-any.whl" in message and "--name" in message
    assert [pack.version for pack in packs()] == ["1.0"]
    said("packs", "add", str(second), "--name", "other", "--trust")
    assert [pack.name for pack in packs()] == ["kitchen", "other"]
    names = said("tasks", "list").split()
    assert {"kit_plain", "other:kit_plain", "other:kit_group"} <= set(names)
    assert said("packs", "add", str(first))  # the same again changes nothing
    assert [pack.is_trusted for pack in packs()] == [True, True]


def test_a_package_index(
    tmp_path: Path, store: Path, said: Words, refused: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = wheel(tmp_path, "1.0"), wheel(tmp_path, "2.0")
    with index_of(old, new) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        assert said("packs", "add", "kitchen==1.0", "--trust").startswith("kitchen 1.0")
        assert said("packs", "update", "kitchen==1.0") == "kitchen 1.0 is here\n"
        assert "lmms-eval packs trust kitchen" in said("packs", "update")  # new code needs new consent
        assert [(pack.version, pack.requirement, pack.is_trusted) for pack in packs()] == [("2.0", "kitchen", False)]
        assert said("packs", "update") == "kitchen 2.0 is the newest\n"
        assert "No matching distribution" in refused("packs", "add", "kitchen==9.0", "--name", "k")
        assert "No matching distribution" in refused("packs", "add", "no-such-package")
    assert "cannot be reached" in refused("packs", "add", "kitchen", "--name", "k")
    with index_of(new, sha256="0" * 64) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        assert "does not have the hash that the index states" in refused("packs", "add", "kitchen", "--name", "k")
    assert left(store) == ["kitchen", "kitchen.index.json", packs()[0].folder, "packs.json"]


def test_a_pack_that_a_process_uses_stays_until_it_ends(tmp_path: Path, store: Path, said: Words) -> None:
    said("packs", "add", str(wheel(tmp_path)), "--trust")
    folder = packs()[0].path
    code = "from lmms_eval.tasks.packs.store import *; use(pack_named('kitchen')); print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert "a run uses its files" in said("packs", "remove", "kitchen")
        assert folder.is_dir() and not packs()
        process.communicate("\n")
    said("packs", "add", str(wheel(tmp_path, "2.0")))
    assert not folder.exists() and packs()[0].path.is_dir()


def test_two_commands_that_take_one_name(
    tmp_path: Path, said: Words, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = wheel(tmp_path, "1.0"), wheel(tmp_path, "2.0")

    def answer() -> bool:  # the other command ends while this one asks
        code = f"from lmms_eval.cli.main import main; main(['packs', 'add', {str(second)!r}])"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        return True

    monkeypatch.setattr(command, "_agrees", answer)
    assert main(["packs", "add", str(first)]) == 2
    assert "another command added kitchen 2.0 meanwhile" in capsys.readouterr().err
    assert [(pack.version, pack.path.is_dir()) for pack in packs()] == [("2.0", True)]


def test_packages_that_tasks_import(tmp_path: Path, said: Words) -> None:
    files = {**TASKS, "kitchen/tasks/coded/utils.py": f"import json, no_such_package\nfrom kitchen.x import y\n{CODE}"}
    out = said("packs", "add", str(wheel(tmp_path, files=files)), "--with_packages")
    assert "pip install no-such-package" in out


NO_TASKS = {"kitchen/a.py": ""}


def _bad(tmp_path: Path) -> dict[str, tuple[list[str], str]]:
    good = str(wheel(tmp_path / "good"))
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"PK\3\4 half")
    link = wheel(tmp_path / "link", files={})
    with zipfile.ZipFile(link, "a") as opened:
        entry = zipfile.ZipInfo("kitchen/tasks/x.yaml")
        entry.external_attr = 0o120777 << 16
        opened.writestr(entry, "/etc/passwd")
    several = {"a/tasks/x.yaml": "task: x\n", "b/tasks/x.yaml": "task: x\n"}
    return {
        "no such file": ([str(tmp_path / "none-1.0-x.whl")], "cannot be read: No such file"),
        "no wheel's name": ([str(tmp_path / "x.whl")], "the name of a wheel is"),
        "neither": (["a/b"], "give NAME, NAME==VERSION, a wheel"),
        "an option": (["--", "-rfile"], "give NAME, NAME==VERSION, a wheel"),
        "half a file": ([str(broken)], "get it again"),
        "no tasks": ([str(wheel(tmp_path / "none", files=NO_TASKS))], "has no folder PACKAGE/tasks with YAML files"),
        "no task": ([str(wheel(tmp_path / "no", files={"k/tasks/x.yaml": "a: 1\n"}))], "holds no task"),
        "several": ([str(wheel(tmp_path / "two", files=several))], "has several folders of tasks: a/tasks, b/tasks"),
        "traversal": ([str(wheel(tmp_path / "up", files={"../x.yaml": "task: x\n"}))], "leads outside its folder"),
        "absolute": ([str(wheel(tmp_path / "abs", files={"/x.yaml": "task: x\n"}))], "leads outside its folder"),
        "link": ([str(link)], "which is a link or device"),
        "name with blank": ([good, "--name", "a b"], "--name 'a b'"),
        "name with slash": ([good, "--name", "../a"], "--name '../a'"),
        "name with colon": ([good, "--name", "a:b"], "--name 'a:b'"),
        "hidden name": ([good, "--name", ".a"], "--name '.a'"),
        "folder outside": ([good, "--tasks_folder", "../.."], "give a path below the package"),
        "absolute folder": ([good, "--tasks_folder", "/etc"], "give a path below the package"),
        "no such folder": ([good, "--tasks_folder", "kitchen/none"], "holds no YAML file"),
        "one name for two": ([good, good, "--name", "a"], "--name names one pack"),
    }  # fmt: skip


def test_bad_input_is_one_line_and_leaves_nothing(tmp_path: Path, store: Path, refused: Words) -> None:
    for name, (words, text) in _bad(tmp_path).items():
        message = refused("packs", "add", *words)
        assert text in message, (name, message)
        assert not store.exists() or left(store) == [], name
    for words in (["remove", "none"], ["trust", "none"], ["update", "none"], ["describe", "none"]):
        assert "unknown pack 'none'" in refused("packs", *words)


def test_a_bomb_is_refused(tmp_path: Path, store: Path, refused: Words) -> None:
    path = tmp_path / "bomb-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened, opened.open("bomb/tasks/x.yaml", "w") as file:
        for _ in range(600):
            file.write(bytes(2**20))
    assert "over 100 times its size" in refused("packs", "add", str(path))
    assert left(store) == []


def test_damaged_tables_and_files(tmp_path: Path, store: Path, said: Words, refused: Words) -> None:
    said("packs", "add", str(wheel(tmp_path)), "--trust")
    (store / "kitchen.index.json").write_text("{half")
    assert "kit_plain" in said("tasks", "list")  # the index is made again
    good = (store / "packs.json").read_text()
    for text in ("[half", "{}", '[{"name": 1}]'):
        (store / "packs.json").write_text(text)
        for words in (["packs", "list"], ["packs", "add", str(wheel(tmp_path))], ["tasks", "list"]):
            assert "remove the file, then add the packs again" in refused(*words)
    (store / "packs.json").write_text(good)
    moved = packs()[0].path.rename(tmp_path / "moved")
    assert "is gone; remove the pack (lmms-eval packs remove kitchen)" in refused("tasks", "list")
    assert "its files are gone" in said("packs", "list")
    assert moved.is_dir() and said("packs", "remove", "kitchen")


def test_a_folder_of_packs_that_cannot_be_written(
    tmp_path: Path, refused: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LMMS_EVAL_PACKS", str(tmp_path / "file"))
    assert "cannot be made or opened" in refused("packs", "add", str(wheel(tmp_path)))


def test_other_files_in_the_folder_of_the_packs_stay(tmp_path: Path, store: Path, said: Words) -> None:
    (store / "photos" / "summer").mkdir(parents=True)
    (store / "empty").mkdir()
    said("packs", "add", str(wheel(tmp_path)))
    said("packs", "remove", "kitchen")
    assert left(store) == ["empty", "packs.json", "photos", "photos/summer"]


def test_hostile_files_do_not_hide_the_others(tmp_path: Path, said: Words) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    files = {
        **TASKS,
        "kitchen/tasks/aliases.yaml": "\n".join([*lines, "task: bomb", ""]),
        "kitchen/tasks/deep.yaml": "task: " + "[" * 5000,
        "kitchen/tasks/tag.yaml": "task: t\ntag: !!python/object/apply:os.system ['true']\n",
        "kitchen/tasks/cycle.yaml": "include: cycle.yaml\ntask: c\n",
        "kitchen/tasks/outside.yaml": "include: ../../../../../../../etc/passwd\ntask: o\n",
        "kitchen/tasks/endless.yaml": "include: /dev/zero\ntask: z\n",
        "kitchen/tasks/large.yaml": "task: l\n" + "#" * (1 << 24),
    }
    out = said("packs", "add", str(wheel(tmp_path, files=files)))
    assert "2 tasks, 1 groups" in out and "7 files cannot be read" in out
    assert "kit_plain" in said("tasks", "list")


@pytest.fixture
def shared_name(tmp_path: Path, said: Words) -> None:
    """A pack with a task ``gsm8k`` of its own."""
    own = {"kitchen/tasks/own/gsm8k.yaml": PLAIN.format(name="gsm8k"), "kitchen/tasks/own/rows.jsonl": ROWS}
    out = said("packs", "add", str(wheel(tmp_path, files={**TASKS, **own})), "--trust")
    assert "1 of its names are this package's own, so write kitchen:NAME: gsm8k" in out


@pytest.mark.usefixtures("shared_name")
def test_names_of_packs_are_listed_searched_and_described(said: Words, capsys: pytest.CaptureFixture[str]) -> None:
    assert {"gsm8k", "kitchen:gsm8k", "kit_plain", "kit_tag"} <= set(said("tasks", "list").split())
    rows = {row["name"]: row for row in json.loads(said("tasks", "search", "gsm8k", "--json"))}
    assert rows["gsm8k"]["documents"] == 1319 and rows["kitchen:gsm8k"]["documents"] is None
    assert "own/gsm8k.yaml" in (described := said("tasks", "describe", "kitchen:gsm8k")) and "1,319" not in described
    assert "1,319" in said("tasks", "describe", "gsm8k")
    assert "own/gsm8k.yaml" in said("tasks", "describe", "gsm8k", "--pack_first")
    assert "3 tasks, 1 group checked: OK" in said("check", "--tasks", "kitchen:*")
    assert main(["tasks", "describe", "kitchen:none"]) == 2
    assert "unknown task 'kitchen:none'" in capsys.readouterr().err


@pytest.mark.usefixtures("shared_name")
def test_a_name_or_wildcard_that_others_have_too_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def logged(name: str, pack_first: bool = False, include: Sequence[Path] = ()) -> str:
        caplog.clear()
        with caplog.at_level("INFO", logger="lmms_eval"):
            choose([name], Catalogue(include, pack_first=pack_first))
        return "\n".join(record.getMessage() for record in caplog.records)

    assert logged("gsm8k") == "gsm8k is this package's own task; packs have kitchen:gsm8k"
    assert logged("gsm8k", True) == "gsm8k is kitchen:gsm8k; there is also a task of this package"
    assert logged("gsm8*") == "gsm8* does not select 1 names of pack kitchen (kitchen:gsm8*)"
    assert logged("kit_*") == "kit_* selects 3 names of pack kitchen (kitchen:kit_*)"
    assert logged("kitchen:gsm8k") == logged("kit_plain") == logged("ifeval") == ""
    (tmp_path / "mine").mkdir()  # a name that became taken after the pack was added
    (tmp_path / "mine/mine.yaml").write_text(PLAIN.format(name="kit_plain"))
    said = logged("kit_plain", include=[tmp_path / "mine"])
    assert "kit_plain is this package's own task; packs have kitchen:kit_plain" in said


RUN = ("--model", "baseline", "--model_args", "strategy=gold", "--log_samples", "--verbosity", "ERROR")


def results(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*_results.json")
    return dict(json.loads(file.read_text()))


@pytest.mark.usefixtures("shared_name")
def test_runs_of_packs(tmp_path: Path, said: Words) -> None:
    def run(name: str) -> dict[str, Any]:
        said(*RUN, "--tasks", "kitchen:gsm8k,kit_coded", "--output_path", str(tmp_path / name))
        return results(tmp_path / name)

    first = run("first")
    (pack,) = packs()
    assert first["results"]["kitchen:gsm8k"]["exact_match,none"] == 1
    stated = first["packs"]["kitchen:gsm8k"]
    assert {**stated, "files": ""} == {"pack": "kitchen", "version": "1.0", "sha256": pack.sha256, "files": ""}
    assert len({one["files"] for one in first["packs"].values()}) == 2
    assert "one?" in said("show", str(tmp_path / "first"), "kitchen:gsm8k", "0")
    said("packs", "remove", "kitchen")  # its files stay, since this process uses them
    own = {"kitchen/tasks/own/gsm8k.yaml": PLAIN.format(name="gsm8k"), "kitchen/tasks/own/rows.jsonl": ROWS}
    code = {"kitchen/tasks/coded/utils.py": f"# other\n{CODE}"}
    said("packs", "add", str(wheel(tmp_path, "2.0", {**TASKS, **own, **code})), "--trust")
    second = run("second")
    files = [[one["packs"][task]["files"] for one in (first, second)] for task in ("kitchen:gsm8k", "kit_coded")]
    assert files[0][0] == files[0][1] and files[1][0] != files[1][1]
    assert first["run_key"] != second["run_key"]
    compared = said("compare", str(tmp_path / "first"), str(tmp_path / "second"), "--json", str(tmp_path / "c.json"))
    text = "have tasks of different packs ({}): kitchen 1.0 / kitchen 2.0, with {} task files"
    assert text.format("kitchen:gsm8k", "equal") in compared and text.format("kit_coded", "other") in compared
    notes = json.loads((tmp_path / "c.json").read_text())["notes"]
    assert all("different packs" in note for note in notes[:2])


@pytest.mark.usefixtures("shared_name")
def test_results_of_other_tasks_name_no_pack(tmp_path: Path, said: Words) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/mine.yaml").write_text(PLAIN.format(name="mine"))
    (tmp_path / "mine/rows.jsonl").write_text(ROWS)
    said(*RUN, "--tasks", "mine", "--include_path", str(tmp_path / "mine"), "--output_path", str(tmp_path / "out"))
    assert "packs" not in results(tmp_path / "out")


@pytest.mark.usefixtures("shared_name")
def test_a_module_that_raises_shows_its_line(tmp_path: Path, said: Words, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--output_path", str(tmp_path / "out"))
    for place, code in (("raises", "1 / 0\n"), ("exits", "raise SystemExit(3)\n"), ("absent", "import no_such\n")):
        files = {f"{place}/tasks/t.yaml": PLAIN.format(name=f"t_{place}") + "process_results: !function utils.f\n"}
        files |= {f"{place}/tasks/utils.py": code}
        said("packs", "add", str(wheel(tmp_path, files=files, package=place)), "--trust")
        assert main([*RUN, "--tasks", f"t_{place}", *out]) == 2
        *frames, message = capsys.readouterr().err.splitlines()
        assert "t.yaml: key 'process_results': module" in message
        assert [line.partition("utils.py:")[2] for line in frames] == [f"1, in <module>:  {code.strip()}"]


def test_completion_follows_the_packs(tmp_path: Path, said: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "kit_plain" not in current_index()["tasks"]
    own = {"kitchen/tasks/own/gsm8k.yaml": PLAIN.format(name="gsm8k"), "kitchen/tasks/own/rows.jsonl": ROWS}
    said("packs", "add", str(wheel(tmp_path, files={**TASKS, **own})))
    assert "kit_plain" in current_index()["tasks"]
    for typed, names in {
        "kitchen:kit_": ["kit_group", "kit_plain", "kit_tag"], "kitchen:g": ["gsm8k"],
        "mme,kitchen:kit_p": ["kit_plain"],
    }.items():  # fmt: skip
        beginning = typed[: typed.index(":") + 1]
        assert suggest(["--tasks", typed], current_index()).values == [beginning + name for name in sorted(names)]
    assert suggest(["--tasks", "nothing:x"], current_index()).kind == "files"

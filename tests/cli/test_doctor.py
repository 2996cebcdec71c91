from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from lmms_eval.cli.doctor import KEYS, doctor_lines, optional_parts
from lmms_eval.cli.main import main


def test_keys_are_told_by_presence_only() -> None:
    lines = doctor_lines({"OPENAI_API_KEY": "sk-do-not-show", "HF_TOKEN": ""})
    assert "  OPENAI_API_KEY: present" in lines
    assert "  HF_TOKEN: absent" in lines
    told = [line.strip().split(":")[0] for line in lines if line.endswith((": present", ": absent"))]
    assert [name for name in told if name in KEYS] == list(KEYS)
    assert "sk-do-not-show" not in "\n".join(lines)


def test_sections(capsys) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    for title in ("Software", "Accelerators", "Machine", "Optional parts", "Scoring data", "Keys", "Sandbox"):
        assert f"{title}\n  " in text
    assert f"Python {platform.python_version()}" in text
    for layer in ("namespaces", "landlock", "seccomp", "no_new_privs", "threads", "bubblewrap"):
        assert f"  {layer}: active (" in text or f"  {layer}: not active (" in text
    assert "  limits: active (" in text
    assert "programs of models are run" in text or "programs of models are refused" in text


def test_places(tmp_path: Path) -> None:
    text = "\n".join(doctor_lines({"HF_HOME": str(tmp_path / "absent" / "home")}))
    assert f"HF home: {tmp_path}/absent/home, " in text
    assert "GiB free, does not exist yet" in text
    assert f"current folder: {Path.cwd()}, " in text


def test_scoring_data(tmp_path: Path) -> None:
    lines = doctor_lines({"NLTK_DATA": str(tmp_path)})
    remedy = "absent, install it with `lmms-eval fetch nltk` or give --nltk_data DIR"
    assert f"  NLTK punkt_tab: {remedy}" in lines
    assert f"  NLTK wordnet: {remedy}" in lines
    assert "  geocoder: none, give --geocode_table FILE or --geocoder nominatim" in lines
    folder = tmp_path / "corpora/wordnet"
    folder.mkdir(parents=True)
    for name in ("index.noun", "noun.exc"):
        (folder / name).touch()
    lines = doctor_lines({"NLTK_DATA": str(tmp_path), "LMMS_EVAL_GEOCODER": "nominatim"})
    assert f"  NLTK wordnet: {folder}" in lines
    assert "  geocoder: nominatim" in lines


def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "  Java, for BLEU-4 and CIDEr of captions: absent, install a Java runtime" in doctor_lines({})
    (tmp_path / "java").touch(0o755)
    assert f"  Java, for BLEU-4 and CIDEr of captions: {tmp_path}/java" in doctor_lines({})


def test_optional_parts() -> None:
    requirements = [
        'pydantic>=2; extra == "server"',
        'surely-no-such-package>=1 ; extra == "server"',
        "pydantic>=2.7; extra == 'present-one'",
        'pytest; extra == "dev"',
        "numpy>=1",
    ]
    assert [fact.line for fact in optional_parts(requirements)] == [
        "present-one: present",
        "server: missing surely-no-such-package: pip install 'lmms_eval[server]'",
    ]
    assert "not installed as a package" in optional_parts([])[0].line


def test_the_report_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-do-not-show")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    assert main(["doctor", "--json"]) == 0
    text = capsys.readouterr().out
    sections = json.loads(text)["sections"]
    keys = {fact["name"]: fact["is_present"] for fact in sections["Keys"]}
    assert keys["OPENAI_API_KEY"] and not keys["HF_TOKEN"] and "do-not-show" not in text
    assert sections["Machine"][0]["name"] == "CPU cores" and sections["Machine"][0]["is_present"] is None
    assert main(["doctor", "--json", "--fix"]) == 2
    assert "--fix --json" in capsys.readouterr().err

"""The stand-alone script as users start it: from anywhere, with a judge on loopback, killed and started again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from lmms_eval.cli import mmie
from lmms_eval.cli.main import main
from lmms_eval.errors import UsageError
from tests.cases import for_each
from tests.judges.internvl import checkpoint
from tests.models.families.build import BUILDERS
from tests.servers.stub import StubServer
from tests.tasks.mmie.answers import record, records, write

SCRIPT = Path(__file__).parents[2] / "lmms_eval" / "tasks" / "mmie" / "main.py"
ENVIRONMENT = {**os.environ, "OPENAI_API_KEY": "test-key", "HF_HUB_OFFLINE": "1"}


def script(*words, cwd, env=ENVIRONMENT):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, words)], cwd=cwd, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def judge_flags(server):
    return "--judge_model", "jury", "--judge_base_url", server.url, "--judge_args", "num_concurrent=3"


def read(path):
    return json.loads(path.read_text())


def test_both_spellings_of_the_flags_and_the_printed_report(tmp_path):
    write(tmp_path / "in", records(7), "mine.json")
    with StubServer() as server:
        code, out, err = ended(
            script("--input_dir", "in", "--input_file", "mine.json", "--output_dir", "res", "--output_file", "o.json",
                   "--save_step", "3", *judge_flags(server), cwd=tmp_path)
        )  # fmt: skip
        assert code == 0, err
        lines = out.splitlines()
        assert lines[:6] == ["File: mine.json", "Sample size: 7", "AVG: 3.0", "SA: 3.0", "PBL: 2.5", "MSR: 3.5"]
        assert "mmie_judge" in out
        output = read(tmp_path / "res" / "o.json")
        assert [entry["id"] for entry in output] == [entry["id"] for entry in records(7)]
        assert output[1]["images"] == ["in/images/0.png", "in/images/1.png"]
        summary = read(tmp_path / "res" / "o.summary.json")
        assert summary["categories"]["AVG"]["percent"] == 50.0
        assert summary["judge"]["model"] == "jury"
        assert set(summary["fields"]) == {"Literature", "Art", "Physics"}
        total = server.stats()["total"]
        code, again, _ = ended(
            script("--input_dir", "in", "--input_name", "mine.json", "--output_dir", "res", "--output_name", "o.json",
                   *judge_flags(server), cwd=tmp_path)
        )  # fmt: skip
        assert (code, again) == (0, out)
        assert server.stats()["total"] == total == 7
        code, _, _ = ended(
            script("--input_dir", "in", "--input_name", "mine.json", "--output_dir", "res", "--output_name", "o.json",
                   "--force", *judge_flags(server), cwd=tmp_path)
        )  # fmt: skip
        assert server.stats()["total"] == 14


def test_a_killed_script_goes_on_and_ends_as_if_it_had_not_been(tmp_path):
    n = 60
    write(tmp_path / "in", records(n))
    with StubServer(delay=0.03) as server:
        words = ("--input_dir", "in", *judge_flags(server))
        code, _, err = ended(script(*words, "--output_dir", "whole", cwd=tmp_path))
        assert code == 0, err
        asked = Counter(server.stats()["by_body"])
        assert (len(asked), asked.total()) == (n, n)
        for share in (n // 5, n // 2):
            process = script(*words, "--output_dir", "out", cwd=tmp_path)
            journal = tmp_path / "out" / "temp" / "eval_result.json.journal" / "judgements-0.jsonl"
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (journal.exists() and journal.read_bytes().count(b"\n") >= share):
                time.sleep(0.005)
            process.kill()
            process.communicate()
            assert journal.read_bytes().count(b"\n") < n
        code, _, err = ended(script(*words, "--output_dir", "out", cwd=tmp_path))
        assert code == 0, err
        again = Counter(server.stats()["by_body"]) - asked
    assert len(again) == n
    assert again.total() <= n + 2 * 3  # what was in flight at the two kills
    for name in ("eval_result.json", "eval_result.summary.json"):
        ours, theirs = (read(tmp_path / folder / name) for folder in ("out", "whole"))
        if name.endswith("summary.json"):
            assert ours.pop("reused") > 0
            assert theirs.pop("reused") == 0
        assert ours == theirs


def test_bad_records_are_named_counted_and_do_not_stop_the_others(tmp_path):
    content = [
        *records(3),
        record(3, "### Score\n1", id="XX-3", catagory=None),
        {"id": "SA-9"},
        record(6, "### Score\n6"),
    ]
    content[0]["question"][0]["image"] = "gone.png"
    content[5]["question"] = [{"text": "q", "image": "images/0.png"}] * 5
    write(tmp_path / "in", content)
    with StubServer() as server:
        words = ("--input_dir", "in", *judge_flags(server))
        code, out, err = ended(script(*words, cwd=tmp_path))
        assert code == 2
        assert out.startswith("in/gone.png not found!\n")
        assert "error: record 3 ('XX-3'): id 'XX-3' belongs to no category" in err
        assert "error: record 4 ('SA-9'): the record lacks the key 'question'" in err
        assert "skipped: record 5 ('SA-6'): 5 pictures" in err
        assert read(tmp_path / "eval_outputs" / "eval_result.summary.json")["categories"]["AVG"]["scored"] == 3
        strict = ended(script(*words, "--strict_images", "--output_dir", "strict", cwd=tmp_path))
        assert "error: record 0 ('SA-0'): in/gone.png not found (--strict_images)" in strict[2]
        full = ended(script(*words, "--view", "full_text", "--output_dir", "full", cwd=tmp_path))
        assert "skipped" not in full[2]


def test_a_judge_that_is_not_there_withholds_and_says_why(tmp_path):
    write(tmp_path / "in", records(2))
    with StubServer(fault="401") as server:
        code, out, err = ended(script("--input_dir", "in", *judge_flags(server), cwd=tmp_path))
    assert code == 3
    assert "Sample size: 0" in out
    assert "unscored: record 0 ('SA-0'): auth" in err


@for_each(
    ("words", "said"),
    [
        (["--model_path", "M", "--judge_model", "J"], "two judges"),
        (["--judge_model", "J", "--trust_remote_code"], "is for a judge in this process"),
        (["--save_step", "0"], "--save_step must be at least 1"),
        (["--input_name", "none.json"], r"none\.json cannot be read"),
        (["--input_name", "object.json"], "a JSON list of records"),
        (["--input_name", "torn.json"], "no complete JSON file"),
        (["--judge_prompts", "data.json", "--judge_model", "J"], "must be a JSON object of texts"),
        (["--model_path", "./none"], r"internvl: \./none cannot be read"),
        (["--input_nam", "x"], "unrecognized"),
    ],
)
def test_what_is_refused(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(write(tmp_path / "eval_inputs", records(1)))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path("object.json").write_text("{}")
    Path("torn.json").write_text("[{")
    with pytest.raises(UsageError, match=said):
        mmie.judge(["--input_dir", ".", *words])
    assert not Path("eval_outputs").exists()


def test_the_default_judge_is_the_benchmarks_own():
    given = mmie.parser().parse_args(["--trust_remote_code", "--device", "cpu"])
    options = mmie.judge_options(given)
    assert options.model == "internvl:MMIE/MMIE-Score"
    assert (options.arguments, options.device) == ({"trust_remote_code": True}, "cpu")


def test_the_command_tells_its_actions(capsys):
    assert main(["mmie", "--help"]) == 0
    assert "judge" in capsys.readouterr().out


@for_each("kind", ["remote", "native"])
def test_a_checkpoint_of_random_weights_judges_and_says_nothing_that_is_a_score(tmp_path, kind):
    if kind == "remote":
        flags = ("--model_path", checkpoint.write(tmp_path / "judge"), "--trust_remote_code")
    else:
        flags = ("--model_path", BUILDERS["internvl_hf"](tmp_path / "judge"), "--judge_args", "dtype=float32")
    n = 3 if kind == "remote" else 1  # the other one writes all of its 1,024 tokens
    write(tmp_path / "in", records(n))
    environment = {**ENVIRONMENT, "HF_MODULES_CACHE": str(tmp_path / "modules")}
    code, out, err = ended(script("--input_dir", "in", "--device", "cpu", *flags, cwd=tmp_path, env=environment))
    assert code == 0, err
    assert out.splitlines()[1:3] == ["Sample size: 0", "AVG: None"]
    summary = read(tmp_path / "eval_outputs" / "eval_result.summary.json")
    assert summary["categories"]["AVG"]["unparsable"] == n
    assert summary["categories"]["AVG"]["strict_mean"] == 0.0
    feedback = [entry["gpt_feedback"] for entry in read(tmp_path / "eval_outputs" / "eval_result.json")]
    assert all(feedback)
    if kind == "remote":  # pictures and tiles, as the checkpoint's own chat counts them
        assert [text.split("[")[-1] for text in feedback] == ["1 1 False]", "2 2 False]", "1 1 False]"]

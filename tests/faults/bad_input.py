"""The table of bad input that is refused before anything is asked, and what its tests share."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.workload import results_of
from tests.faults.command import Ended, in_process
from tests.servers.stub import StubServer

DOCUMENTS = 4
SAMPLE = "exact_match,none"


def words_of(flags: Mapping[str, str | None]) -> list[str]:
    return [word for flag, value in flags.items() if value is not None for word in (flag, value) if word]


def here(flags: Mapping[str, str | None], **environment: str) -> Ended:
    return in_process(*words_of(flags), **environment)


def good(tmp: Path, **over: str | None) -> dict[str, str | None]:
    """Flags of a run that would succeed; ``None`` leaves one out, an empty text gives a switch."""
    return {
        "--model": "baseline",
        "--tasks": "bench_text",
        "--include_path": str(tmp / "tasks"),
        "--output_path": str(tmp / "out"),
        **{f"--{name}": value for name, value in over.items()},
    }


def refused(ended: Ended, says: tuple[str, ...]) -> None:
    """One line that names what, where and what to do; no traceback, nothing on standard output."""
    assert ended.code == 2, ended.shown
    assert not ended.out
    lines = ended.err.splitlines()
    assert [line.startswith("error: ") for line in lines].count(True) == 1, ended.err
    assert lines[-1].startswith("error: ")
    assert "Traceback" not in ended.err
    for part in says:
        assert part in lines[-1]


def withheld(ended: Ended, out: Path, scored: int, failed: int) -> str:
    """Exit code 3, no headline, the partial value and the command that goes on; returns the reasons."""
    assert ended.code == 3, ended.shown
    assert "Traceback" not in ended.shown
    assert f"withheld ({failed} failed)" in ended.out
    assert "run the same command again" in ended.out
    document = results_of(out)
    (task,) = document["outcomes"]
    outcome = document["outcomes"][task]
    assert (outcome["scored"], outcome["failed"]) == (scored, failed)
    assert document["results"][task][SAMPLE] is None
    assert outcome["partial"][SAMPLE] == {**outcome["partial"][SAMPLE], "value": 1.0, "n": scored}
    samples = [json.loads(line) for path in out.rglob("*_samples_*.jsonl") for line in path.read_text().splitlines()]
    assert [sample["status"] for sample in samples].count("scored") == scored
    return "\n".join(outcome["reasons"])


def rewrite(file: str, old: str, new: str) -> Callable[[Path], None]:
    def spoil(tasks: Path) -> None:
        text = (tasks / file).read_text()
        assert old in text
        (tasks / file).write_text(text.replace(old, new))

    return spoil


def with_function(yaml: tuple[str, str], code: str) -> Callable[[Path], None]:
    def spoil(tasks: Path) -> None:
        rewrite("bench_text.yaml", *yaml)(tasks)
        (tasks / "utils.py").write_text(code)

    return spoil


def rows(*questions: object) -> Callable[[Path], None]:
    lines = [json.dumps({"question": question, "answer": "a"}) for question in questions]
    return lambda tasks: _write(tasks / "bench_text.jsonl", "\n".join(lines) + "\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def corrupt_parquet(tasks: Path) -> None:
    rewrite("bench_text.yaml", "dataset_path: json", "dataset_path: parquet")(tasks)
    rewrite("bench_text.yaml", ".jsonl", ".parquet")(tasks)
    (tasks / "bench_text.parquet").write_bytes(b"PAR1, but not parquet" * 20)


@dataclass(frozen=True)
class Bad:
    """One bad input: what is changed in the good command or in the task's folder, and what the message says."""

    name: str
    says: tuple[str, ...]
    flags: Mapping[str, str | None] = field(default_factory=dict)
    spoil: Callable[[Path], None] | None = None


NAMES = [
    Bad("unknown_model", ("unknown model 'opnai'", "did you mean openai", "lmms-eval models"), {"model": "opnai"}),
    Bad("unknown_task", ("unknown task 'bench_txt'", "did you mean bench_text", "tasks lists"), {"tasks": "bench_txt"}),
    Bad("no_match", ("--tasks zz*: the wildcard matches no name", "lmms-eval tasks"), {"tasks": "zz*"}),
    Bad("unknown_option", ("unknown flag --limt", "did you mean --limit?"), {"limt": "3"}),
    Bad("unknown_argument", ("no argument 'stratgy'", "--model_args", "strategy"), {"model_args": "stratgy=gold"}),
]
OPTIONS = [
    Bad("negative_limit", ("--limit", "a count from 1 on", "-1 for all", "got -3"), {"limit": "-3"}),
    Bad("limit_0", ("--limit", "a count from 1 on", "got 0"), {"limit": "0"}),
    Bad("limit_text", ("--limit", "number", "'ten'"), {"limit": "ten"}),
    Bad("output_is_a_file", ("--output_path", "afile is a file, not a folder"), {"output_path": "{tmp}/afile"}),
    Bad("output_below_a_file", ("--output_path", "afile is a file, not"), {"output_path": "{tmp}/afile/out"}),
    Bad("log_samples_alone", ("--log_samples", "--output_path DIR"), {"log_samples": "", "output_path": None}),
    Bad("no_include_path", ("--include_path", "{tmp}/none"), {"include_path": "{tmp}/none"}),
    Bad("no_resume", ("--resume", "{tmp}/none", "the run's record"), {"resume": "{tmp}/none"}),
    Bad(
        "config_key", ("{tmp}/config.yaml", "unknown key 'taks'", "did you mean tasks?"),
        {"config": "{tmp}/config.yaml"},
    ),
    Bad("no_config", ("--config", "{tmp}/none.yaml", "No such file"), {"config": "{tmp}/none.yaml"}),
    Bad(
        "no_model_folder", ("{tmp}/weights", "does not exist", "--model_args pretrained=DIR"),
        {"model": "hf", "model_args": "pretrained={tmp}/weights"},
    ),
    Bad("no_key", ("OPENAI_API_KEY", "api.openai.com", "base_url"), {"model": "openai", "model_args": "model=x"}),
]  # fmt: skip
TASKS = [
    Bad(
        "unknown_yaml_key", ("{tasks}/bench_text.yaml", "unknown key 'doc_to_txt'", "'doc_to_text'"),
        spoil=rewrite("bench_text.yaml", "doc_to_text:", "doc_to_txt: question\ndoc_to_text:"),
    ),
    Bad(
        "yaml_syntax", ("bench_text.yaml, line ", "not valid task YAML"),
        spoil=rewrite("bench_text.yaml", "task: bench_text", "task: [bench_text"),
    ),
    Bad(
        "no_data_file", ("bench_text.yaml", "{tasks}/bench_text.jsonl", "does not exist", "holds: bench_text.yaml"),
        spoil=lambda tasks: (tasks / "bench_text.jsonl").unlink(),
    ),
    Bad(
        "corrupt_parquet", ("{tasks}/bench_text.parquet", "not a readable parquet file", "fetch or write it again"),
        spoil=corrupt_parquet,
    ),
    Bad(
        "corrupt_jsonl", ("{tasks}/bench_text.jsonl, line 2", "not valid JSON"),
        spoil=lambda tasks: _write(tasks / "bench_text.jsonl", '{"question": "one"}\n{"question": "cut o'),
    ),
    Bad("no_documents", ("bench_text.jsonl", "no documents"), spoil=rows()),
    Bad(
        "no_split", ("bench_text.yaml", "no split 'validation'", "there is: test"),
        spoil=rewrite("bench_text.yaml", "test_split: test", "test_split: validation"),
    ),
    Bad(
        "no_column", ("bench_text.yaml", "'doc_to_text'", "no column 'querstion'", "there is: question, answer"),
        spoil=rewrite("bench_text.yaml", "doc_to_text: question", "doc_to_text: querstion"),
    ),
    Bad(
        "no_column_in_template", ("bench_text.yaml", "doc_to_text", "'querstion' is undefined", "question, answer"),
        spoil=rewrite("bench_text.yaml", "doc_to_text: question", 'doc_to_text: "{{querstion}}"'),
    ),
    Bad(
        "no_function", ("bench_text.yaml", "'process_results'", "utils.py has no function 'sorce'", "mean score?"),
        spoil=with_function(
            ("metric_list", "process_results: !function utils.sorce\nmetric_list"), "def score(doc, results): ...\n"
        ),
    ),
    Bad(
        "process_docs_raises", ("task 'bench_text'", "KeyError: 'nope'", "process_docs", "--verbosity DEBUG"),
        spoil=with_function(
            ("metric_list", "process_docs: !function utils.process\nmetric_list"),
            "def process(docs):\n    return docs.map(lambda doc: {'x': doc['nope']})\n",
        ),
    ),
]  # fmt: skip


def stub_flags(tmp: Path, server: StubServer, task: str) -> dict[str, str | None]:
    arguments = f"model=stub,base_url={server.url},num_concurrent=2,max_retries=0"
    return good(tmp, model="openai", model_args=arguments, tasks=task, log_samples="")


@contextmanager
def running(tmp: Path, server: StubServer, asked: int = 4) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own, from when so many of its questions have arrived."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lmms_eval", *words_of(stub_flags(tmp, server, "bench_text"))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while server.stats()["total"] < asked and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def end_of(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=60)
    return Ended(process.returncode, out, err)

"""Bad input, one row each: what the person sees, the exit code, and what is kept (``docs/troubleshooting.md``)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.workload import picture_task, text_task
from tests.faults.bad_input import (
    DOCUMENTS,
    NAMES,
    OPTIONS,
    SAMPLE,
    TASKS,
    Bad,
    end_of,
    good,
    here,
    refused,
    rewrite,
    rows,
    running,
    stub_flags,
    with_function,
    withheld,
)
from tests.faults.command import journal, lmms_eval, results
from tests.servers.stub import StubServer

DEMO_ROWS = Path(__file__).parents[2] / "lmms_eval/tasks/megabench/demo/core/test-00000-of-00001.parquet"
PLUGIN = """
import sys

from lmms_eval.api.model import lmms


class {name}(lmms):
    def __init__(self, **_):
        super().__init__()
        {built}

    def generate_until(self, requests):
        return [self.say(request.args[0]) for request in requests]

    def say(self, context):
        {say}
        return context.partition("ANSWER=")[2]

    def loglikelihood(self, requests):
        raise NotImplementedError

    def generate_until_multi_round(self, requests):
        raise NotImplementedError
"""

STREAMING = """
import os

from lmms_eval.api.model import Model
from lmms_eval.api.request import Response


class Breaks(Model):
    is_simple = True
    kinds = frozenset({"generate_until"})

    def respond(self, stream):
        answered = 0
        while requests := stream.take(1):
            if answered == int(os.environ["BREAKS_AT"]):
                raise ArithmeticError("overflow")
            answered += 1
            yield Response(requests[0].id, text=requests[0].context.partition("ANSWER=")[2])

    def prepare(self, request):
        return request

    def identity(self):
        return {}
"""


@pytest.fixture(autouse=True)
def without_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL", "VERBOSITY", "LMMS_EVAL_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    text_task(tmp_path / "tasks", DOCUMENTS)
    return tmp_path / "tasks"


@pytest.mark.parametrize("bad", [*NAMES, *OPTIONS, *TASKS], ids=lambda bad: bad.name)
def test_refused_before_anything_is_asked(bad: Bad, tasks: Path, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("in the way")
    (tmp_path / "config.yaml").write_text("model: baseline\ntaks: bench_text\n")
    if bad.spoil is not None:
        bad.spoil(tasks)

    def filled(text: str | None) -> str | None:
        return None if text is None else text.replace("{tmp}", str(tmp_path)).replace("{tasks}", str(tasks))

    ended = here(good(tmp_path, **{name: filled(value) for name, value in bad.flags.items()}))
    refused(ended, tuple(str(filled(part)) for part in bad.says))
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "afile").read_text() == "in the way"


def test_the_good_command_of_this_file_succeeds(tasks: Path, tmp_path: Path) -> None:
    assert here(good(tmp_path)).code == 0
    assert results(tmp_path / "out")["results"]["bench_text"][SAMPLE] == 1.0


@pytest.mark.parametrize("value", [7, 2.5, True])
def test_a_column_of_numbers_is_a_prompt_of_digits(value: object, tasks: Path, tmp_path: Path) -> None:
    rows(value)(tasks)
    assert here(good(tmp_path, log_samples="")).code == 0
    (sample,) = next((tmp_path / "out").glob("*_samples_*")).read_text().splitlines()
    assert json.loads(sample)["input"] == str(value)


@pytest.mark.parametrize("value", [{"text": "a", "kind": "b"}, ["a", "b"]], ids=["struct", "list"])
def test_a_column_that_is_no_text_is_no_prompt(value: object, tasks: Path, tmp_path: Path) -> None:
    rows(value, value)(tasks)
    refused(here(good(tmp_path)), ("bench_text.yaml", "'doc_to_text'", "column 'question'"))


def test_an_empty_field_fails_its_own_document(tasks: Path, tmp_path: Path) -> None:
    rows("one", None, "three")(tasks)
    reasons = withheld(here(good(tmp_path, log_samples="")), tmp_path / "out", scored=2, failed=1)
    assert "column 'question'" in reasons


def test_megabench_rows_without_their_media(tmp_path: Path) -> None:
    rows_file = tmp_path / "root" / "core" / "test.parquet"
    rows_file.parent.mkdir(parents=True)
    rows_file.symlink_to(DEMO_ROWS)
    flags = good(
        tmp_path, tasks="megabench_core", include_path=None, data_root=str(tmp_path / "root"), limit="3",
        model="openai", model_args="model=x,base_url=http://127.0.0.1:9/v1",
    )  # fmt: skip
    ended = here(flags, HF_HOME=str(tmp_path / "home"))
    refused(ended, ("data.zip", f"{tmp_path}/root/data", "9.15 GB", "--data_root DIR"))
    assert journal(tmp_path / "out") == []


# --- one document, or one function, is bad: the rest is scored


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as started:
        yield started


def test_gold_answers_open_every_picture(tmp_path: Path) -> None:
    """Full marks of the reference answers show that every prompt can be built, or say that this was left out."""
    picture_task(tmp_path / "tasks", 3, 3)
    (tmp_path / "tasks" / "bench_image_1.jpg").write_bytes(b"no picture")
    flags = good(tmp_path, tasks="bench_image", model_args="strategy=gold", log_samples="")
    reasons = withheld(here(flags), tmp_path / "out", scored=2, failed=1)
    assert "bench_image_1.jpg is not a readable picture" in reasons
    told = here(good(tmp_path, tasks="bench_image", no_media="", output_path=f"{tmp_path}/o2"))
    assert told.code == 0, told.shown
    refused(
        here(good(tmp_path, tasks="bench_image", log_media="", no_media="")),
        ("--log_media and --no_media contradict each other",),
    )


def test_a_missing_and_a_corrupt_picture(tmp_path: Path, server: StubServer) -> None:
    picture_task(tmp_path / "tasks", 4, 4)
    pictures = [tmp_path / "tasks" / f"bench_image_{number}.jpg" for number in range(4)]
    contents = [picture.read_bytes() for picture in pictures]
    pictures[1].unlink()
    pictures[2].write_bytes(b"no picture" * 99)
    pictures[3].write_bytes(contents[3][: len(contents[3]) // 2])
    flags = stub_flags(tmp_path, server, "bench_image")
    reasons = withheld(here(flags), tmp_path / "out", scored=1, failed=3)
    for picture, what in zip(
        pictures[1:], ("not found", "not a readable picture", "damaged or cut short"), strict=True
    ):
        assert any(str(picture) in reason and what in reason for reason in reasons.splitlines()), reasons
    for picture, content in zip(pictures, contents, strict=True):
        picture.write_bytes(content)
    again = here(flags)
    assert again.code == 0, again.shown
    assert results(tmp_path / "out")["results"]["bench_image"][SAMPLE] == 1.0
    assert server.stats()["total"] == 4


def plugin(folder: Path, name: str, built: str = "pass", say: str = "pass") -> None:
    """A package with one model of the class interface."""
    models = folder / f"pack_{name.lower()}" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").touch()
    (models / "__init__.py").write_text(f"AVAILABLE_MODELS = {{{name.lower()!r}: {name!r}}}\n")
    (models / f"{name.lower()}.py").write_text(PLUGIN.format(name=name, built=built, say=say))


@pytest.mark.parametrize(
    ("name", "raised", "says"),
    [
        ("NoCard", "RuntimeError('no such card')", "RuntimeError: no such card"),
        ("Divides", "ZeroDivisionError('by zero')", "ZeroDivisionError: by zero"),
    ],
)
def test_a_model_whose_constructor_raises(
    name: str, raised: str, says: str, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path, name, built=f"raise {raised}")
    monkeypatch.syspath_prepend(tmp_path)
    ended = here(good(tmp_path, model=name.lower(), plugins=f"pack_{name.lower()}"))
    refused(ended, (f"model {name.lower()!r} cannot be built", says))
    assert not (tmp_path / "out").exists()


def test_a_model_that_calls_exit_does_not_end_with_success(
    tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(tmp_path, "Leaves", built="sys.exit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    ended = here(good(tmp_path, model="leaves", plugins="pack_leaves"))
    assert ended.code == 1
    assert "called exit (0)" in ended.err
    assert "Traceback" not in ended.err


def test_a_model_that_breaks_off(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of a streaming back end: the traceback is shown, what it had answered is kept."""
    plugin(tmp_path, "Breaks")
    (tmp_path / "pack_breaks" / "models" / "breaks.py").write_text(STREAMING)
    monkeypatch.syspath_prepend(tmp_path)
    flags = good(tmp_path, model="breaks", plugins="pack_breaks")
    broken = here(flags, BREAKS_AT="2")
    assert broken.code == 1
    assert f"what was finished is kept in {tmp_path}/out/.runs/" in broken.err
    assert broken.err.splitlines()[-1] == (
        "error: internal error: ArithmeticError: overflow (see docs/troubleshooting.md#the-run-ends-early)"
    )
    again = here(flags, BREAKS_AT="99")
    assert again.code == 0, again.shown
    assert (results(tmp_path / "out")["timing"]["asked"], len(journal(tmp_path / "out"))) == (2, 4)


def test_a_model_that_raises_for_one_document(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(tmp_path, "Moody", say="if 'Question 2' in context: raise ValueError('not this one')")
    monkeypatch.syspath_prepend(tmp_path)
    flags = good(tmp_path, model="moody", plugins="pack_moody", log_samples="")
    reasons = withheld(here(flags), tmp_path / "out", scored=3, failed=1)
    assert "the plugin's generate_until raised ValueError: not this one" in reasons
    assert len([record for record in journal(tmp_path / "out") if "text" in record]) == 3


FUNCTIONS = {
    "process_results": (
        ("metric_list", "process_results: !function utils.f\nmetric_list"), "process_results raised KeyError: 'nope'"
    ),
    "doc_to_text": (
        ("doc_to_text: question", "doc_to_text: !function utils.f"), "doc_to_text raised KeyError: 'nope'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("key", FUNCTIONS)
def test_a_task_function_that_raises_for_one_document(key: str, tasks: Path, tmp_path: Path) -> None:
    value = {"process_results": "{'exact_match': 1.0}", "doc_to_text": "doc['question']"}[key]
    code = f"def f(doc, *_):\n    return doc['nope'] if 'Question 2' in doc['question'] else {value}\n"
    edit, reason = FUNCTIONS[key]
    with_function(edit, code)(tasks)
    reasons = withheld(here(good(tmp_path, log_samples="")), tmp_path / "out", scored=3, failed=1)
    assert f"{reason} ({tmp_path}/tasks/utils.py:2)" in reasons
    ended = here(good(tmp_path, log_samples="", verbosity="DEBUG"))
    assert "Traceback" in ended.err
    assert f'File "{tmp_path}/tasks/utils.py", line 2, in f' in ended.err


def test_a_doc_to_visual_that_raises_for_one_document(tmp_path: Path, server: StubServer) -> None:
    picture_task(tmp_path / "tasks", 3, 3)
    with open(tmp_path / "tasks" / "utils.py", "a") as file:
        file.write("\n\ndef some(doc):\n    return doc['nope'] if ' 2?' in doc['question'] else doc_to_visual(doc)\n")
    rewrite("bench_image.yaml", "utils.doc_to_visual", "utils.some")(tmp_path / "tasks")
    reasons = withheld(here(stub_flags(tmp_path, server, "bench_image")), tmp_path / "out", scored=2, failed=1)
    lines = (tmp_path / "tasks" / "utils.py").read_text().splitlines()
    place = f"{tmp_path}/tasks/utils.py:{lines.index('def some(doc):') + 2}"
    assert f"doc_to_visual raised KeyError: 'nope' ({place})" in reasons


def test_an_aggregation_that_raises_and_is_mended(tasks: Path, tmp_path: Path) -> None:
    edit = ("aggregation: mean", "aggregation: !function utils.total")
    with_function(edit, "def total(items):\n    return 1 / 0\n")(tasks)
    flags, out = good(tmp_path, log_samples=""), tmp_path / "out"
    for asked in (DOCUMENTS, 0):  # the same command only aggregates again
        ended = here(flags)
        assert ended.code == 1
        assert "Traceback" not in ended.shown
        cause = f"ZeroDivisionError: division by zero ({tmp_path}/tasks/utils.py:2)"
        for part in ("task 'bench_text'", "metric 'exact_match'", cause, "samples are"):
            assert part in ended.out
        document = results(out)
        assert document["results"]["bench_text"][SAMPLE] is None
        assert document["outcomes"]["bench_text"]["scored"] == DOCUMENTS
        assert document["timing"]["asked"] == asked
    mended = tmp_path / "mended"
    text_task(mended, DOCUMENTS)
    with_function(edit, "def total(items):\n    return sum(items)\n")(mended)
    kept = f"path={next(out.glob('*_samples_*'))}"
    again = here(
        good(tmp_path, model="replay", model_args=kept, include_path=str(mended), output_path=f"{tmp_path}/o2")
    )
    assert again.code == 0, again.shown
    assert results(tmp_path / "o2")["results"]["bench_text"][SAMPLE] == DOCUMENTS


# --- two processes, signals, pipes


def test_a_second_run_into_the_same_folder_is_refused(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 16)
    with StubServer(delay=0.3) as server, running(tmp_path, server, asked=2) as first:
        second = here(stub_flags(tmp_path, server, "bench_text"))
        refused(second, ("is in use by process", str(first.pid), ".runs", "choose another --output_path"))
        finished = end_of(first)
        assert server.stats()["total"] == 16
    assert finished.code == 0, finished.shown
    assert results(tmp_path / "out")["results"]["bench_text"][SAMPLE] == 1.0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_in_the_middle_and_the_same_command_again(number: signal.Signals, code: int, tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 20)
    usual = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # started by nohup, the tests would hand on that it is ignored
    with StubServer(delay=0.2) as server, running(tmp_path, server) as process:
        signal.signal(signal.SIGHUP, usual)
        process.send_signal(number)
        stopped = end_of(process)
        assert stopped.code == code, stopped.shown
        assert "Traceback" not in stopped.shown
        assert "a second signal ends at once" in stopped.err
        assert "run the same command again" in stopped.out
        kept, asked = len(journal(tmp_path / "out")), server.stats()["total"]
        assert 0 < kept == asked < 20  # what was in flight was waited for
        assert results(tmp_path / "out")["results"]["bench_text"][SAMPLE] is None
        again = here(stub_flags(tmp_path, server, "bench_text"))
        assert again.code == 0, again.shown
        assert results(tmp_path / "out")["results"]["bench_text"][SAMPLE] == 1.0
        assert server.stats()["total"] == 20


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    text_task(tmp_path / "tasks", 16)
    with StubServer(delay=30) as server, running(tmp_path, server, asked=2) as process:
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        assert end_of(process).code == 130
        assert time.monotonic() - begin < 5


@pytest.mark.parametrize("flags", [("tasks", "list"), ("--tasks", "bench_text", "--show_config"), ("--limt",)])
def test_a_reader_that_goes_away(flags: tuple[str, ...], tasks: Path, tmp_path: Path) -> None:
    """``lmms-eval ... 2>&1 | true``: results are written and the exit code is the command's."""
    run = ("--model", "baseline", "--include_path", str(tasks), "--output_path", str(tmp_path / "out"))
    words = [*(run if flags[0] == "--tasks" else ()), *flags]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lmms_eval", *words], stdout=writer, stderr=writer, timeout=60, check=False
        )
    finally:
        os.close(writer)
    assert done.returncode == (2 if flags == ("--limt",) else 0)
    if run[0] in words:
        assert results(tmp_path / "out")["results"]["bench_text"][SAMPLE] == 1.0


def test_a_mistake_in_a_process_of_its_own(tasks: Path, tmp_path: Path) -> None:
    """The table above runs in the test's process; this is the same for a person's shell."""
    refused(lmms_eval("--model", "baseline", "--tasks", "bench_txt", "--include_path", tasks), ("unknown task",))

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loguru import logger
from msgspec.structs import replace
from PIL import Image

from lmms_eval.api.generation import RequestLimits
from lmms_eval.api.messages import ChatMessages
from lmms_eval.api.request import Request, Response, Usage
from lmms_eval.api.task import Selection
from lmms_eval.engine.drive import AskReport
from lmms_eval.engine.evaluate import EngineOptions, RunScores, evaluate
from lmms_eval.engine.plan import plan_task
from lmms_eval.engine.response_cache import CacheFile, CacheKeys, ResponseCache, is_good, is_sampled
from lmms_eval.engine.share import _add_report
from lmms_eval.engine.store import RunStore
from lmms_eval.errors import UsageError
from lmms_eval.utils.records import to_dict
from tests.cases import for_each
from tests.engine.fakes import FakeModel, FakeTask

ROOT = Path(__file__).parents[2]
IDENTITY = {"backend": "tests.Fake", "arguments": {"pretrained": "a"}}


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is logged."""
    lines: list[str] = []
    handler = logger.add(lambda message: lines.append(str(message)), level="INFO")
    yield lines
    logger.remove(handler)


def ask(folder: Path, cache: ResponseCache, model: FakeModel, task: FakeTask | None = None) -> RunScores:
    """One run with its own journal."""
    folder.mkdir()
    task = task or FakeTask(20)
    store = RunStore(folder, "scoring")
    try:
        result = evaluate(
            [plan_task(task, None, 0)], Selection((task,)), model, store, EngineOptions(grace_s=1.0, cache=cache)
        )
    finally:
        store.close()
        cache.close()
    assert result is not None
    return result


def cache(tmp: Path, **identity: Any) -> ResponseCache:
    return ResponseCache(CacheFile(tmp / "c.db"), CacheKeys(IDENTITY | identity, False), "fake")


def counts(hit: int = 0, stored: int = 0, skipped: int = 0, failed: int = 0, damaged: int = 0) -> dict[str, int]:
    return {"hit": hit, "stored": stored, "skipped": skipped, "failed": failed, "damaged": damaged}


@for_each("rounds", [1, 3])
def test_a_second_identical_run_asks_nothing(tmp_path: Path, rounds: int) -> None:
    first = ask(tmp_path / "1", cache(tmp_path), FakeModel(), FakeTask(20, rounds=rounds))
    model = FakeModel()
    again = ask(tmp_path / "2", cache(tmp_path), model, FakeTask(20, rounds=rounds))
    assert model.asked == []
    assert first.asking.cache == counts(stored=20 * rounds)
    assert again.asking.cache == counts(hit=20 * rounds)
    assert again.asking.answered == again.asking.output_tokens == 0
    assert again.tasks[0].outcome.scored == 20
    assert again.tasks[0].metrics[0].value == first.tasks[0].metrics[0].value
    assert again.tasks[0].tally.output_tokens == first.tasks[0].tally.output_tokens == 40 * rounds
    assert again.prompt_fingerprint == first.prompt_fingerprint


def test_hits_are_in_the_journal_with_finish_reason_and_usage_but_no_time(tmp_path: Path) -> None:
    def answer(request: Request) -> Response:
        return Response(
            request.id, text="cut", finish_reason="length", usage=Usage(7, 5, 3), latency=2.5, attempts=2, batch=("x",)
        )

    ask(tmp_path / "1", cache(tmp_path), FakeModel(answer))
    ask(tmp_path / "2", cache(tmp_path), FakeModel())
    store = RunStore(tmp_path / "2", "scoring")
    found = store.response("fake/3/0/0/0")
    store.close()
    expected = Response("fake/3/0/0/0", text="cut", finish_reason="length", usage=Usage(7, 5, 3), is_cached=True)
    assert found == expected


def test_what_is_missing_alone_is_asked(tmp_path: Path) -> None:
    ask(tmp_path / "1", cache(tmp_path), FakeModel(), FakeTask(8))
    model = FakeModel()
    result = ask(tmp_path / "2", cache(tmp_path), model, FakeTask(20))
    assert sorted(model.asked) == sorted(f"fake/{number}/0/0/0" for number in range(8, 20))
    assert result.asking.cache == counts(hit=8, stored=12)


BAD = {
    "error": lambda request: Response.failure(request.id, "timeout", "no answer"),
    "blank": lambda request: Response(request.id, text=" \n", finish_reason="stop"),
    "invisible": lambda request: Response(request.id, text="\u200b\ufeff", finish_reason="stop"),
    "empty refusal": lambda request: Response(request.id, text="", finish_reason="content_filter"),
}


@for_each("answer", BAD.values(), ids=BAD)
def test_nothing_failed_or_blank_is_stored(tmp_path: Path, answer: Any) -> None:
    assert ask(tmp_path / "1", cache(tmp_path), FakeModel(answer)).asking.cache == counts()
    model = FakeModel()
    ask(tmp_path / "2", cache(tmp_path), model)
    assert len(model.asked) == 20


def test_what_is_good() -> None:
    assert is_good(Response("i", text="I cannot", finish_reason="content_filter"))
    assert is_good(Response("i", loglikelihood=float("-inf"), is_greedy=False))
    assert not is_good(Response("i", loglikelihood=float("nan"), is_greedy=False))
    assert not is_good(Response("i", rounds=("a", " ")))
    assert not is_good(Response("i"))


def conversation(url: Any, text: str = "what?", system: str = "be brief", **media: Any) -> ChatMessages:
    content = [{"type": media.pop("type", "image"), "url": url, **media}, {"type": "text", "text": text}]
    return ChatMessages.model_validate(
        {
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": system}]},
                {"role": "user", "content": content},
            ]
        }
    )


def picture(path: Path, colour: str) -> str:
    Image.new("RGB", (4, 4), colour).save(path)
    return str(path)


def request(task: FakeTask | None = None, **over: Any) -> Request:
    options = {"max_new_tokens": 8, "until": ["\n"], "temperature": 0}
    made = Request("fake/0/0/0/0", "generate_until", task or FakeTask(2), 0, lambda: ChatMessages(messages=[]))
    return replace(made, **{"generation": options, **over})


def test_the_key_of_each_factor_changed_is_another(tmp_path: Path) -> None:
    path = picture(tmp_path / "p.png", "red")
    usual, messages = CacheKeys(IDENTITY, False), conversation(path)
    base = usual.key(request(), messages)
    options = request().generation
    film = conversation(path, type="video", start_time=0.0)
    keys = {
        "base": base,
        "backend": CacheKeys({**IDENTITY, "backend": "other"}, False).key(request(), messages),
        "model argument": CacheKeys({**IDENTITY, "arguments": {"pretrained": "b"}}, False).key(request(), messages),
        "prompt": usual.key(request(), conversation(path, "what??")),
        "system prompt": usual.key(request(), conversation(path, system="be long")),
        "kind": usual.key(request(kind="loglikelihood"), messages),
        "continuation": usual.key(request(kind="loglikelihood", continuation="A"), messages),
        "limits": usual.key(request(media=RequestLimits(max_pixels=9)), messages),
        "other limits": usual.key(request(media=RequestLimits(max_pixels=8)), messages),
        "blanks": usual.key(request(kind="loglikelihood", continuation="A", moves_blanks=True), messages),
        "another continuation": usual.key(request(kind="loglikelihood", continuation="B"), messages),
        "option": usual.key(request(generation={**options, "max_new_tokens": 9}), messages),
        "further option": usual.key(request(generation={**options, "min_p": 0.1}), messages),
        "stop": usual.key(request(generation={**options, "until": ["\n", "."]}), messages),
        "repeat": usual.key(request(repeat=1), messages),
        "plain text": usual.key(request(), messages.model_copy(update={"is_plain": True})),
        "kind of media": usual.key(request(), conversation(path, type="video")),
        "start": usual.key(request(), film),
        "later start": usual.key(request(), conversation(path, type="video", start_time=1.0)),
        "mapping": usual.key(request(), conversation({"path": path, "nframes": 4}, type="video")),
        "mapping with more frames": usual.key(request(), conversation({"path": path, "nframes": 8}, type="video")),
        "address": usual.key(request(), conversation("https://h.example/p.png")),
        "another address": usual.key(request(), conversation("https://h.example/q.png")),
    }
    before = (tmp_path / "p.png").stat().st_mtime_ns
    picture(tmp_path / "p.png", "blue")
    os.utime(tmp_path / "p.png", ns=(before + 10**9, before + 10**9))
    keys["picture under the same path"] = usual.key(request(), messages)
    assert len(set(keys.values())) == len(keys)
    assert all(len(key) == 64 for key in keys.values())


def test_what_changes_no_answer_changes_no_key(tmp_path: Path) -> None:
    one, two = picture(tmp_path / "p.png", "red"), picture(tmp_path / "q.png", "red")
    base = CacheKeys(IDENTITY, False).key(request(), conversation(one))
    turned = dict(reversed(list(request().generation.items())))
    assert CacheKeys(dict(reversed(IDENTITY.items())), False).key(request(), conversation(two)) == base
    other = request(FakeTask(9, "other"), id="other/5/0/0/0", doc_id=5, seed=7, generation=turned)
    assert CacheKeys(IDENTITY, False).key(other, conversation(Path(one).read_bytes())) == base


@for_each("over", [{"doc_id": 1}, {"seed": 1}, {"round": 1}, {"index": 1}, {"context": "c"}])
def test_models_that_read_documents_have_the_document_in_the_key(over: dict[str, Any]) -> None:
    messages, keys = ChatMessages(messages=[]), CacheKeys(IDENTITY, True)
    base = keys.key(request(), messages)
    assert keys.key(request(), messages) == base
    assert keys.key(request(**over), messages) != base
    assert keys.key(request(FakeTask(2, "other")), messages) != base


SAMPLED = [
    {"temperature": 0.2}, {"do_sample": True}, {"n": 2}, {"best_of": 3}, {"num_return_sequences": 2},
    {"extra_body": {"temperature": 1}}, {"temperature": "high"},
]  # fmt: skip


@for_each("options", SAMPLED, ids=str)
def test_generation_that_samples_is_skipped_and_counted(tmp_path: Path, options: dict[str, Any]) -> None:
    made = request(generation=options)
    plain = cache(tmp_path)
    assert plain.key(made, made.build_messages) is None
    for kind in ("loglikelihood", "loglikelihood_rolling"):
        likelihood = replace(made, kind=kind, continuation="A")
        assert plain.key(likelihood, made.build_messages) is not None
    assert plain.counts() == counts(skipped=1)
    by_arguments = ResponseCache(plain.file, CacheKeys(IDENTITY, False), "fake", options)
    assert by_arguments.key(request(), made.build_messages) is None
    plain.close()


def test_greedy_generation_is_none() -> None:
    assert is_sampled({"extra_body": '{"temperature": 0.7}'})
    assert is_sampled({"extra_body": {"sampling": {"n": 2}}})
    assert is_sampled({"sampling_params": '{"do_sample": true'})  # no JSON: nobody knows
    assert not is_sampled({"extra_body": '{"top_k": 1}', "until": "", "response_format": {"type": "text"}})
    assert not is_sampled({"temperature": 0, "do_sample": False, "n": 1, "top_p": None, "extra_body": {"x": 1}})


def test_what_has_no_key_is_skipped_and_asked(tmp_path: Path) -> None:
    used = cache(tmp_path)

    def fails() -> ChatMessages:
        raise ValueError("no such column")

    assert used.key(request(), fails) is None
    assert used.key(request(generation={"processor": object()}), lambda: ChatMessages(messages=[])) is None
    assert used.key(request(kind="generate_until_multi_round"), lambda: ChatMessages(messages=[])) is None
    nameless = ResponseCache(used.file, None, "fake")
    model = FakeModel()
    result = ask(tmp_path / "1", nameless, model)
    assert (used.counts()["skipped"], result.asking.cache, len(model.asked)) == (3, counts(skipped=20), 20)


WRITER = """
import sys
from pathlib import Path
from lmms_eval.engine.response_cache import CacheFile
file = CacheFile(Path(sys.argv[1]))
for number in range(150):
    file.put(f"common {number}", "m", b"common")
    file.put(f"{sys.argv[2]} {number}", "m", sys.argv[2].encode())
    assert file.get(f"{sys.argv[2]} {number}") is not None
file.close()
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "c.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    writers = [subprocess.Popen([*command, f"process-{number}"], env=environ) for number in range(3)]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    file = CacheFile(path)
    assert (file.stats().responses, file.verify(), file.set_aside) == (150 * 4, 0, None)
    file.close()


def test_a_damaged_file_is_set_aside(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / "c.db").write_bytes(b"no database, by any means" * 400)
    for number in (1, 2):
        ask(tmp_path / str(number), cache(tmp_path), FakeModel())
        assert (tmp_path / f"c.db.damaged-{number}").exists()
        assert len([line for line in said if "is damaged" in line and f"damaged-{number}" in line]) == 1
        (tmp_path / "c.db").write_bytes(b"no database, by any means" * 400)


def test_a_file_damaged_in_the_middle_is_found_by_the_check(tmp_path: Path) -> None:
    file = CacheFile(tmp_path / "c.db")
    for number in range(300):
        file.put(f"{number:064}", "m", b"x" * 200)
    file.close()
    content = bytearray((tmp_path / "c.db").read_bytes())
    content[8192:12288] = b"\xff" * 4096
    (tmp_path / "c.db").write_bytes(content)
    again = CacheFile(tmp_path / "c.db")
    assert again.set_aside == tmp_path / "c.db.damaged-1"
    assert again.stats().responses == 0
    again.close()


def test_damage_during_a_run_costs_only_the_cache(tmp_path: Path, said: list[str]) -> None:
    ask(tmp_path / "1", cache(tmp_path), FakeModel())
    used = cache(tmp_path)
    used.file._connection.execute("PRAGMA shrink_memory")  # so that it looks at the file again
    with (tmp_path / "c.db").open("r+b") as file:
        file.write(b"\xff" * 16384)
    model = FakeModel()
    result = ask(tmp_path / "2", used, model)
    assert result.tasks[0].outcome.scored == 20
    assert result.asking.cache["failed"] >= 1
    assert (tmp_path / "c.db.damaged-1").exists()
    assert any("failed" in line for line in said)
    model = FakeModel()
    ask(tmp_path / "3", cache(tmp_path), model)
    assert len(model.asked) < 20


def test_a_row_that_does_not_fit_its_digest_is_deleted_and_asked_again(tmp_path: Path) -> None:
    ask(tmp_path / "1", cache(tmp_path), FakeModel())
    connection = sqlite3.connect(tmp_path / "c.db")
    connection.execute("UPDATE responses SET record = CAST(replace(record, 'answer 7', 'answer 8') AS BLOB)")
    connection.commit()
    connection.close()
    model = FakeModel()
    result = ask(tmp_path / "2", cache(tmp_path), model)
    assert model.asked == ["fake/7/0/0/0"]
    assert result.asking.cache == counts(hit=19, stored=1, damaged=1)
    assert result.tasks[0].metrics[0].value == 1.0


def test_a_file_that_cannot_be_written_costs_only_the_cache(tmp_path: Path, said: list[str]) -> None:
    used = cache(tmp_path)
    used.file._connection.execute("PRAGMA query_only = ON")
    result = ask(tmp_path / "1", used, FakeModel())
    assert result.asking.cache == counts(failed=20)
    assert result.tasks[0].outcome.scored == 20
    assert len([line for line in said if "c.db failed" in line]) == 1


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "mine.db")
    connection.execute("CREATE TABLE dear (x)")
    connection.close()
    before = (tmp_path / "mine.db").read_bytes()
    with pytest.raises(UsageError, match="another program or version"):
        CacheFile(tmp_path / "mine.db")
    assert (tmp_path / "mine.db").read_bytes() == before
    with pytest.raises(UsageError, match="cannot be opened"):
        CacheFile(tmp_path / "mine.db" / "below" / "c.db")


def test_counts_of_all_processes_come_together() -> None:
    report = AskReport(cache=counts(hit=2, stored=1))
    _add_report(report, to_dict(AskReport(cache=counts(hit=3, failed=1))))
    assert report.cache == counts(hit=5, stored=1, failed=1)
    _add_report(report, to_dict(AskReport()))
    assert report.cache == counts(hit=5, stored=1, failed=1)

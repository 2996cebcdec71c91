from __future__ import annotations

from pathlib import Path

from lmms_eval.api.request import Request, Response, SentMessage, SentPart
from lmms_eval.engine.judging import JudgementStore
from lmms_eval.engine.response_cache import CacheKeys
from lmms_eval.judges.prompts import user_turn
from lmms_eval.results.sample import JudgePrompts
from lmms_eval.storage.lines import read_lines
from tests.engine.fakes import FakeTask


def request(text: str, doc_id: int = 0, **options: object) -> Request:
    name = f"t/{doc_id}/judge/a/0"
    return Request(name, "generate_until", FakeTask(), doc_id, lambda: user_turn(text), generation=options)


def recalled(store: JudgementStore, asked: Request) -> str | None:
    found = store.recall(asked, asked.build_messages)
    return None if found is None else found.text


def keys(name: str = "jury") -> CacheKeys:
    return CacheKeys({"name": name}, reads_documents=False)


def test_replies_are_found_again_by_judge_prompt_and_options(tmp_path: Path) -> None:
    store = JudgementStore(tmp_path, keys())
    asked, failed = request("rate", temperature=0), request("rate", 1, temperature=0)
    for one in (asked, failed):
        assert recalled(store, one) is None
    store.keep(Response(asked.id, text="7"), "ab")
    store.keep(Response.failure(failed.id, "timeout", "slow"), "ab")
    assert recalled(store, asked) is None  # of this start: the engine has taken it in already
    store.close()
    again = JudgementStore(tmp_path, keys(), rank=1)
    assert again.ids == {asked.id}
    assert recalled(again, asked) == "7"
    assert recalled(again, failed) is None
    assert recalled(again, request("rate it", temperature=0)) is None
    assert recalled(again, request("rate", temperature=1)) is None
    again.close()
    other = JudgementStore(tmp_path, keys("appeal"))
    assert recalled(other, asked) is None
    other.close()


def test_a_reply_whose_line_is_damaged_does_not_count(tmp_path: Path) -> None:
    store = JudgementStore(tmp_path, keys())
    for number in range(2):
        recalled(store, request("rate", number))
        store.keep(Response(f"t/{number}/judge/a/0", text="7"), "ab")
    store.close()
    path = tmp_path / "judgements-0.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"text":"7"', b'"text":"6"', 1))
    again = JudgementStore(tmp_path, keys())
    assert recalled(again, request("rate")) is None
    assert recalled(again, request("rate", 1)) == "7"
    again.close()


def test_a_prompt_is_written_once(tmp_path: Path) -> None:
    def keep(store: JudgementStore, number: int, prompt: str) -> None:
        told = (SentMessage("user", (SentPart(text=f"rate {prompt}"),)),)
        recalled(store, request("rate", number))
        store.keep(Response(f"t/{number}/judge/a/0", text="7", messages=told), prompt)

    first = JudgementStore(tmp_path, keys())
    for number, prompt in enumerate(("ab", "ab", "cd")):
        keep(first, number, prompt)
    first.close()
    second = JudgementStore(tmp_path, keys())
    keep(second, 3, "cd")
    second.close()
    records = [record for _, record in read_lines(tmp_path / "judgements-0.jsonl")]
    assert ["messages" in record for record in records] == [True, False, True, False]
    verdict = {"name": "a", "text": "7", "prompt": "cd"}
    (joined,) = JudgePrompts(tmp_path).joined({"judge": [verdict]})["judge"]
    assert joined == {**verdict, "asked": [{"role": "user", "content": [{"text": "rate cd"}]}]}
    for unknown in ({"judge": [{"prompt": "ef"}, "text"]}, {"judge": None}, {}):
        assert JudgePrompts(tmp_path).joined(unknown) == unknown
    assert JudgePrompts(None).joined({"judge": [verdict]}) == {"judge": [verdict]}

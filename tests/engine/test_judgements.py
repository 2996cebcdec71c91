from __future__ import annotations

from pathlib import Path

from lmms_eval.api.request import Request, Response
from lmms_eval.engine.cache_key import CacheKeys
from lmms_eval.engine.judgements import JudgementStore
from lmms_eval.judges.prompts import user_turn
from tests.engine.fakes import FakeTask


def request(text: str, **options: object) -> Request:
    return Request("t/0/judge/a/0", "generate_until", FakeTask(), 0, lambda: user_turn(text), generation=options)


def keys(name: str = "jury") -> CacheKeys:
    return CacheKeys({"name": name}, reads_documents=False)


def test_replies_are_found_again_by_judge_prompt_and_options(tmp_path: Path) -> None:
    store = JudgementStore(tmp_path, keys())
    asked = request("rate", temperature=0)
    key = store.key(asked, user_turn("rate"))
    store.add(Response(asked.id, text="7"), "ab", key)
    store.add(Response.failure("t/1/judge/a/0", "timeout", "slow"), "ab", key)
    assert store.known(asked.id, key) is None  # of this start: the engine has taken it in already
    store.close()
    again = JudgementStore(tmp_path, keys(), rank=1)
    found = again.known(asked.id, again.key(asked, user_turn("rate")))
    assert found is not None
    assert found.text == "7"
    assert again.known("t/1/judge/a/0", key) is None
    others = [
        again.key(asked, user_turn("rate it")),
        again.key(request("rate", temperature=1), user_turn("rate")),
        keys("appeal").key(asked, user_turn("rate")),
    ]
    assert len({key, *others}) == 4
    assert all(again.known(asked.id, other) is None for other in others)
    again.close()


def test_a_reply_whose_line_is_damaged_does_not_count(tmp_path: Path) -> None:
    store = JudgementStore(tmp_path, keys())
    for number in range(2):
        store.add(Response(f"t/{number}/judge/a/0", text="7"), "ab", "key")
    store.close()
    path = tmp_path / "judgements-0.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"text":"7"', b'"text":"6"', 1))
    again = JudgementStore(tmp_path, keys())
    assert again.known("t/0/judge/a/0", "key") is None
    assert getattr(again.known("t/1/judge/a/0", "key"), "text", "") == "7"
    again.close()

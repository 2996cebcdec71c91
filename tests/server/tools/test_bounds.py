from __future__ import annotations

from lmms_eval.server.mcp.answers import DEEPEST, LONGEST_ERROR, LONGEST_TEXT, MOST_ITEMS, cut, readable


def test_what_is_long_is_cut_with_a_note():
    found = cut({"text": "a" * (LONGEST_TEXT + 5), "list": [*range(MOST_ITEMS + 2)], "plain": [1, None, True, "b"]})
    assert found["text"] == "a" * LONGEST_TEXT + "… [5 more characters]"
    assert found["list"] == [*range(MOST_ITEMS), "[2 more entries]"]
    assert found["plain"] == [1, None, True, "b"]
    assert cut({str(number): 0 for number in range(MOST_ITEMS + 1)})["…"] == "[1 more entries]"


def test_what_is_deep_is_cut():
    deep: object = "end"
    for _ in range(DEEPEST + 50):
        deep = [deep]
    found = cut(deep)
    for _ in range(DEEPEST):
        (found,) = found
    assert found == "[left out: nested too deeply]"


def test_texts_lose_paths_and_secrets_and_their_middle():
    assert readable("cannot read /home/someone/data/x.json") == "cannot read …/x.json"
    assert "abcdefgh" not in readable("api_key=abcdefgh")
    long = readable("begin " + "x" * 2 * LONGEST_ERROR + " end")
    assert long.startswith("begin ") and long.endswith(" end") and "characters left out" in long
    assert len(long) < LONGEST_ERROR + 100

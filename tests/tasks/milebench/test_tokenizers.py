from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import TaskError
from lmms_eval.tasks.milebench.prompts import tokenizer
from tests.cases import for_each


@for_each("name", ["characters", "words"])
@for_each("text", ["", " a  b\nc ", "\n", "é 日本"])
def test_decoding_gives_the_text_back(name: str, text: str) -> None:
    made = tokenizer(name)
    assert made.decode(made.encode(text)) == text


def test_words_hold_the_white_space_in_front_of_them() -> None:
    assert list(tokenizer("words").encode("one  two\n")) == ["one", "  two", "\n"]


def test_a_checkpoint_counts_by_its_own_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    pytest.importorskip("transformers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "red": 1, "blue": 2}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}', encoding="utf-8")
    found = tokenizer(str(tmp_path))
    assert list(found.encode("red blue red")) == [1, 2, 1]
    assert found.decode([2, 1]) == "blue red"


def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot be loaded"):
        tokenizer(str(tmp_path / "nowhere"))

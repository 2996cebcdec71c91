import sys

import pytest

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.tasks.megabench.conversions.literals import ConversionError
from lmms_eval.tasks.megabench.metrics import translation


def test_bleu_takes_the_truth_as_hypothesis() -> None:
    long, short = "the cat sat on the mat today", "the cat sat on the mat"
    assert translation.bleu(long, long) == pytest.approx(1)
    assert translation.bleu(short, long) != pytest.approx(translation.bleu(long, short))
    assert translation.bleu([long], [long]) == pytest.approx(1)
    assert translation.bleu(long, [long]) == 0


def test_gleu_by_hand() -> None:
    # a b c / a b d: 2 + 1 of 3 + 2 + 1 n-grams agree
    assert translation.sentence_gleu(["a", "b", "c"], ["a", "b", "d"]) == pytest.approx(3 / 6)
    assert translation.sentence_gleu([], ["a"]) == translation.sentence_gleu([], []) == 0
    assert translation.sentence_gleu(["a"] * 3, ["a"]) == pytest.approx(1 / 6)


def test_chinese_words() -> None:
    pytest.importorskip("jieba", exc_type=ImportError)
    assert translation.gleu_cn("我喜欢吃苹果", "我爱吃苹果") == pytest.approx(0.4)
    assert translation.gleu_cn(None, "你好") == 0


def test_without_jieba_there_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    translation._tokenizer.cache_clear()
    with pytest.raises(NotEvaluated, match=r"install lmms_eval\[metrics\]"):
        translation.gleu_cn("你好", "你好")


def test_long_texts_are_refused() -> None:
    for metric in (translation.bleu, translation.gleu_cn):
        with pytest.raises(ConversionError):
            metric("字" * translation.MAX_CHARS, "字")

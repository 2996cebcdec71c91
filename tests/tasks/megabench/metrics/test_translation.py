import marshal
import os
import subprocess
import sys
from pathlib import Path

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


def test_words_are_those_of_the_whole_dictionary() -> None:
    jieba = pytest.importorskip("jieba", exc_type=ImportError)
    whole = jieba.Tokenizer()
    whole.FREQ, whole.total = whole.gen_pfdict(whole.get_dict_file())
    whole.initialized = True
    for text in ("我喜欢吃苹果", "小明硕士毕业于中国科学院", "B超和c#, AT&T 3.5%", "\U00020000x\n ", ""):
        assert translation._words(text) == list(whole.cut_for_search(text))
    assert translation._tokenizer()[0].total == whole.total


def test_no_cache_file_is_written_or_believed(tmp_path: Path) -> None:
    """jieba's own cache lies where any user of the machine can put one, and it is loaded with marshal."""
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({"我喜欢吃苹果": 10**6}, 10**6)))
    program = (
        "import sys\n"
        "written = []\n"
        "def watch(event, arguments):\n"
        "    if event == 'open' and isinstance(arguments[1], str) and set(arguments[1]) & set('wax+'):\n"
        "        written.append(arguments[0])\n"
        "    if event == 'marshal.loads': sys.exit('marshal')\n"
        "from lmms_eval.tasks.megabench.metrics import translation\n"
        "import jieba\n"
        "sys.dont_write_bytecode = True\n"
        "sys.addaudithook(watch)\n"
        "print(translation._words('我喜欢吃苹果'))\n"
        "assert not written, written\n"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environ)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.strip() == "['我', '喜欢', '吃', '苹果']"
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"]


def test_without_jieba_there_is_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)
    translation._tokenizer.cache_clear()
    with pytest.raises(NotEvaluated, match=r"install lmms_eval\[metrics\]"):
        translation.gleu_cn("你好", "你好")


def test_long_texts_are_refused() -> None:
    for metric in (translation.bleu, translation.gleu_cn):
        with pytest.raises(ConversionError):
            metric("字" * translation.MAX_CHARS, "字")

from __future__ import annotations

import random
import shutil

import pytest

from lmms_eval.tasks.general_bench.measures.captions import Caption, caption_tokens, cider

WORDS = ["a", "the", "cat", "dog", "runs", "sits", "on", "mat", "hill", "red", "green", "over"]


def _corpus(seed, size=30):
    draw = random.Random(seed)

    def sentence():
        return draw.choices(WORDS, k=draw.randint(0, 9))

    return [Caption(sentence(), [sentence() for _ in range(draw.randint(1, 4))]) for _ in range(size)]


def test_agrees_with_the_caption_toolkit():
    toolkit = pytest.importorskip("pycocoevalcap.cider.cider", reason="needs pycocoevalcap")
    for seed in (1, 2):
        corpus = _corpus(seed)
        predictions = {k: [" ".join(item.prediction)] for k, item in enumerate(corpus)}
        references = {k: [" ".join(text) for text in item.references] for k, item in enumerate(corpus)}
        wanted, _ = toolkit.Cider().compute_score(references, predictions)
        assert cider(corpus) == pytest.approx(wanted, rel=1e-9)


def test_a_perfect_corpus_of_different_captions_has_ten():
    sentences = ["a cat sits on a mat", "the dog runs over one hill", "two birds fly far away"]
    assert cider([Caption(text.split(), [text.split()]) for text in sentences]) == pytest.approx(10)


def test_one_item_has_no_weights():
    assert cider([Caption(["cat"], [["cat"]])]) == 0.0
    assert cider([]) == 0.0


def test_bounds_and_order():
    corpus = _corpus(3)
    assert 0 <= cider(corpus) <= 10
    assert cider(corpus[::-1]) == pytest.approx(cider(corpus), rel=1e-12)


def test_repeating_a_word_does_not_help():
    reference = ["a", "red", "cat", "sits", "on", "the", "mat"]
    others = [Caption(["x", "y", "z", "u"], [["x", "y", "z", "u"]])]
    plain = cider([Caption(["a", "cat"], [reference]), *others])
    assert cider([Caption(["a", "cat", "cat", "cat", "cat", "cat", "cat", "cat"], [reference]), *others]) < plain


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A man, riding a well-known horse.", ["a", "man", "riding", "a", "well-known", "horse"]),
        ("It's the dog’s; they don't!", ["it", "'s", "the", "dog", "'s", "they", "do", "n't"]),
        ('(3.5 km) -- "far"', ["3.5", "km", "far"]),
        (" . ", []),
    ],
)
def test_tokens(text, tokens):
    assert caption_tokens(text) == tokens


@pytest.mark.skipif(shutil.which("java") is None, reason="the toolkit's tokenizer needs Java")
def test_tokens_agree_with_the_toolkits_tokenizer():
    toolkit = pytest.importorskip("pycocoevalcap.tokenizer.ptbtokenizer", reason="needs pycocoevalcap")
    texts = [
        "A man, riding a well-known horse.",
        "Two dogs don't run; they're asleep on the woman's bed!",
        'He said: "go away", and left -- at once...',
        "3.5 km of road; 20 cars",
    ]
    wanted = toolkit.PTBTokenizer().tokenize({k: [{"caption": text}] for k, text in enumerate(texts)})
    assert [" ".join(caption_tokens(text)) for text in texts] == [wanted[k][0] for k in range(len(texts))]

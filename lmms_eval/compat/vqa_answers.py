"""Normalisation of answers to visual questions, by the name of the EvalAI script of the VQA challenges."""

from __future__ import annotations

from typing import Any

from lmms_eval.metrics import vqa


class EvalAIAnswerProcessor:
    """Normaliser of an answer: ``EvalAIAnswerProcessor()(text)``. Arguments are taken and not used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, item: str) -> str:
        """Return the answer without case, punctuation and articles, with digits for number words."""
        text = self.word_tokenize(item).replace("\n", " ").replace("\t", " ").strip()
        return self.process_digit_article(self.process_punctuation(text))

    def word_tokenize(self, word: str) -> str:
        """Return the text in lower case, without commas and question marks, ``'s`` set apart."""
        return vqa.words_apart(word)

    def process_punctuation(self, in_text: str) -> str:
        """Return the text without punctuation: see ``lmms_eval.metrics.vqa.without_punctuation``."""
        return vqa.without_punctuation(in_text)

    def process_digit_article(self, in_text: str) -> str:
        """Return the words in lower case without articles, number words as digits, contractions with apostrophes."""
        return vqa.digits_and_no_articles(in_text)

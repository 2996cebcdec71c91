"""The reading of answers that a recipe states, as metrics next to the task's own.

A rule that decides gives ``recipe_accuracy``, the share of right answers. Another rule returns a text, which the task's
own metrics score: ``recipe_METRIC``. Answers that the source gives to its judge are put to the run's judge; without one
the metric is withheld, with the bounds that follow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from lmms_eval.api.judging import SECOND_READING, JudgeQuestion, Verdict
from lmms_eval.api.outcome import Estimate, Unscored, Withheld
from lmms_eval.api.task import Answer, MetricDefinition
from lmms_eval.errors import ItemError
from lmms_eval.filters.reasoning import strip_pairs
from lmms_eval.judges.prompts import user_turn
from lmms_eval.recipes.extraction import UNREADABLE, AskedQuestion, ReadingRule, after_thoughts, rule
from lmms_eval.tasks._task_utils.estimates import mean
from lmms_eval.tasks._task_utils.judge_texts import JudgeText
from lmms_eval.tasks._task_utils.question import LETTERS
from lmms_eval.utils.numbers import SHARES, item_number

if TYPE_CHECKING:
    from lmms_eval.recipes.layouts import Fields
    from lmms_eval.recipes.recipe import TaskRecipe

ACCURACY = "recipe_accuracy"
PREFIX = "recipe_"
SCORE = "score"
NO_JUDGE = "none"
"""The judge of a source that asks no judge."""
_NO_AUTHORS = "none"
"""Fingerprint of no text: the vendors' prompts are not known here, so no text counts as theirs."""
CHOICE_TEXT = JudgeText(
    "recipe_choice",
    """Someone answered a multiple-choice question. Say which option the answer means.

The question:
<<<
{question}
>>>
The options:
{options}
The answer:
<<<
{prediction}
>>>

Do not solve the question: only match the answer with the options. If it means no option, or several, reply Z.
Reply with one letter and nothing else.""",
    _NO_AUTHORS,
)
"""Asks the judge for an option's letter; a user's file may replace it (``--judge_prompts``)."""
ANSWER_TEXT = JudgeText(
    "recipe_answer",
    """Copy the final answer out of a response to a question. Do not solve the question, and do not correct the answer.

The question:
<<<
{question}
>>>
The response:
<<<
{prediction}
>>>

Reply with the final answer alone: a number, an expression or a few words. If it has no answer, reply None.""",
    _NO_AUTHORS,
)
"""Asks the judge for the short answer in a response."""
_REPLY = MappingProxyType({"temperature": 0, "max_new_tokens": 64})
_THINK = ("<think>", "</think>")


class RecipeReading(Struct, frozen=True):
    """The reading of one task's answers (``api.task.SecondReading``)."""

    rule: ReadingRule
    fields: Callable[[Mapping[str, Any]], Fields]
    """Reads a document as the fields of layouts."""
    removal: str | None = None
    """How the source removes thoughts: ``TaskRecipe.thinking.removal``."""
    judge: str = ""
    """The source's judge; empty if it names none."""
    settings: Mapping[str, Any] | None = None
    """The run's options for tasks, with the user's file of judge prompts."""
    recipe: str = ""
    """Name and variant."""

    @property
    def identity(self) -> str:
        """The parts that change scores, for the scoring key."""
        texts = (text.identity(self.settings) for text in (CHOICE_TEXT, ANSWER_TEXT))
        return " ".join([self.rule.name, self.removal or "", *texts])

    @property
    def asks_judge(self) -> bool:
        """The source gives some answers to a judge."""
        return self.rule.is_right is not None and self.judge not in ("", NO_JUDGE)

    def metrics(self, own: Sequence[MetricDefinition]) -> tuple[MetricDefinition, ...]:
        """Return the metrics of this reading, given the task's own."""
        if self.rule.is_right is not None:
            return (MetricDefinition(ACCURACY, self._share_right, None, True, SHARES),)
        return tuple(
            structs.replace(
                one, name=f"{PREFIX}{one.name}", aggregation=self._unless_absent(one), aggregation_name=None
            )
            for one in own
            if one.score_range is not None and not one.reduces
        )

    def questions(self, doc: Mapping[str, Any], truth: Any, answers: Sequence[Answer]) -> list[JudgeQuestion]:
        """Return the questions about the answers that the rule does not decide."""
        if not self.asks_judge:
            return []
        try:
            asked, fields = self._asked(doc, truth), self.fields(doc)
        except ItemError:  # the document has no value of this reading
            return []
        texts = {number: self._written(one) for number, one in enumerate(answers)}
        return [
            self._question(number, text, asked, fields)
            for number, text in texts.items()
            if self.rule.read(text, asked) is None
        ]

    def values(
        self,
        doc: Mapping[str, Any],
        truth: Any,
        answers: Sequence[Answer],
        evaluate: Callable[[str], Mapping[str, Any]],
        verdicts: Sequence[Verdict],
    ) -> list[dict[str, Any]]:
        """Return the values of each answer by metric (``api.task.SecondReading``).

        If the recipe cannot read a document, for example because its reference is no option, an error takes the place
        of the score. The task's own score does not depend on it.
        """
        if self.rule.is_right is None:
            return [self._scored(self._written(one), evaluate) for one in answers]
        try:
            asked = self._asked(doc, truth)
        except ItemError as error:
            return [{ACCURACY: {"read": None, SCORE: None, "fault": str(error)}} for _ in answers]
        replies = {verdict.name: verdict for verdict in verdicts}
        return [
            {ACCURACY: self._decided(self._written(one), asked, replies.get(name_of(number)))}
            for number, one in enumerate(answers)
        ]

    def _scored(self, text: str, evaluate: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the task's own values of the text that the rule reads; empty if it reads none."""
        read = self.rule.read(text, AskedQuestion())
        made = {} if read is None else evaluate(read)
        return {f"{PREFIX}{name}": value for name, value in made.items() if not isinstance(value, Unscored)}

    def _decided(self, text: str, asked: AskedQuestion, reply: Verdict | None) -> dict[str, Any]:
        """Return what the rule, or the judge, reads in an answer, and its score; null for both if neither does."""
        assert self.rule.is_right is not None
        read, by_judge = self.rule.read(text, asked), False
        if read is None and self.judge == NO_JUDGE:
            read = UNREADABLE  # the source counts it as wrong
        elif read is None and reply is not None and reply.text is not None and reply.accepted:
            read, by_judge = self._meant(reply.text, asked), True
        score = None if read is None else float(self.rule.is_right(read, asked))
        return {"read": read, SCORE: score, **({"by_judge": True} if by_judge else {})}

    def _written(self, answer: Answer) -> str:
        """Return the text that the source's rule gets: as the model wrote it, less thoughts by the source's rule."""
        text = answer.value if isinstance(answer.value, str) else str(answer.value)
        thoughts = answer.thoughts[-1] if answer.thoughts else None
        whole = text if thoughts is None else thoughts.before(text)
        if self.removal == "after_last_mark":
            return after_thoughts(whole)
        if self.removal == "pairs":
            return strip_pairs(whole, [_THINK]) if _THINK[0] in whole else whole
        return whole if self.removal in ("none", "kimi") else text

    def _asked(self, doc: Mapping[str, Any], truth: Any) -> AskedQuestion:
        texts = self.fields(doc).options
        options = dict(zip(LETTERS, texts, strict=False))
        return AskedQuestion(options, _letter_of(truth, texts) if texts else str(truth))

    def _question(self, number: int, text: str, asked: AskedQuestion, fields: Fields) -> JudgeQuestion:
        options = asked.options or ({"A": asked.truth, "B": "Other Answers"} if self._is_letter else {})
        lines = "\n".join(f"{letter}. {option}" for letter, option in options.items())
        used = (CHOICE_TEXT if options else ANSWER_TEXT).used(self.settings)
        question = fields.question or fields.query
        prompt = used.filled(**{"question": question, "prediction": text} | ({"options": lines} if options else {}))
        return JudgeQuestion(
            name_of(number),
            functools.partial(user_turn, prompt),
            lambda reply: self._meant(reply, asked) is not None,
            _REPLY,
            {SECOND_READING: True},
        )

    @property
    def _is_letter(self) -> bool:
        """Open questions are choices too."""
        return self.rule.name.endswith("qwen-evaluation/mmmu")

    def _meant(self, reply: str, asked: AskedQuestion) -> str | None:
        """Return what the judge's reply means: a letter of an option, or the answer; ``None`` if it is neither."""
        if asked.options or self._is_letter:
            found = self.rule.read(reply, asked)
            return None if found == UNREADABLE else found
        return reply.strip() or None

    def _share_right(self, values: Sequence[Mapping[str, Any]]) -> Estimate | Withheld:
        scores = [value.get(SCORE) for value in values]
        known = [float(score) for score in scores if score is not None]
        faults = [str(value["fault"]) for value in values if "fault" in value]
        if faults:
            partial = math.fsum(known) / len(known) if known else None
            return Withheld(partial, f"{len(faults)} of {len(scores)} documents cannot be read; the first: {faults[0]}")
        if len(known) < len(scores):
            low, high = (math.fsum([*known, *[end] * (len(scores) - len(known))]) / len(scores) for end in (0.0, 1.0))
            partial = math.fsum(known) / len(known) if known else None
            bounds = f": between {low:.4f} and {high:.4f}, whatever it says"
            return Withheld(partial, self._needs_judge(len(scores) - len(known), len(scores)) + bounds)
        by_judge = sum(bool(value.get("by_judge")) for value in values)
        return replace(mean(known), details=self._facts(ACCURACY, len(values), by_judge))

    def _unless_absent(self, own: MetricDefinition) -> Callable[..., Any]:
        """Return the aggregation of a task's metric, which withholds it if the rule could not read some answers."""

        @functools.wraps(own.aggregation)
        def aggregate(values: Sequence[Any], **given: Any) -> Any:
            known = [value for value in values if value is not None]
            made: Any = None
            if known and own.aggregation_name == "mean":
                made = mean([float(item_number(value) or 0.0) for value in known])
            elif known:
                made = own.aggregation(known, **given)
            if len(known) == len(values) and isinstance(made, Estimate):
                return replace(made, details=self._facts(f"{PREFIX}{own.name}", len(values), 0))
            if len(known) == len(values):
                return made
            return Withheld(
                made.value if isinstance(made, Estimate) else made,
                self._needs_judge(len(values) - len(known), len(values)),
            )

        return aggregate

    def line(self, task: str, own: Sequence[MetricDefinition]) -> str:
        """Return a sentence about the metrics of this reading of a task."""
        made = [one.name for one in self.metrics(own)]
        verb = "is" if len(made) == 1 else "are"
        return (
            f"reading: {task}: {', '.join(made)} {verb} by the recipe's reading of the answers, {self.rule.name} "
            f"({self.rule.about}); other metrics are the benchmark's own"
        )

    def _needs_judge(self, absent: int, n: int) -> str:
        whose = f"; the source asks {self.judge}" if self.judge else ""
        return f"{absent} of {n} answers need a judge{whose}"

    def _facts(self, metric: str, n: int, by_judge: int) -> dict[str, Any]:
        entry = {"recipe": self.recipe, "rule": self.rule.name, "n": n, "by_judge": by_judge, "judge": self.judge}
        return {"readings": {metric: entry}}


def name_of(number: int) -> str:
    """Return the name of the question to the judge about an answer, counted from 0."""
    return f"{PREFIX}reading{number or ''}"


def reading_of(
    recipe: TaskRecipe, fields: Callable[[Mapping[str, Any]], Fields], settings: Mapping[str, Any], name: str
) -> RecipeReading | None:
    """Return the reading that the recipe ``name`` states for a task; ``None`` if it states none.

    Raises ``UsageError`` if the recipe names an unknown rule.
    """
    if recipe.extract is None:
        return None
    judge = "" if recipe.judge is None else recipe.judge.model
    return RecipeReading(rule(recipe.extract), fields, recipe.thinking.removal, judge, settings, name)


def _letter_of(truth: Any, options: Sequence[str]) -> str:
    """Return the letter of the right option, which a task gives as a letter, a number or a text.

    Raises ``ItemError`` if it is no option.
    """
    text = str(truth).strip()
    letters = LETTERS[: len(options)]
    bare = text.strip("(). ").upper()
    if bare in letters and len(bare) == 1:
        return bare
    if text.isdecimal() and int(text) < len(options):
        return letters[int(text)]
    if text in options:
        return letters[list(options).index(text)]
    raise ItemError(f"recipe: the reference answer {text!r:.80} is no option; there are {len(options)}")

"""Exchanges with agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.interleaved import response_text
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer
from lmms_eval.tasks.yaml.exchanges.base import TaskExchange
from lmms_eval.tasks.yaml.requests import Ask, MediaQuestion, MessageBuilder

MAX_AGENTIC_STEPS = 12


class AgenticExchange(TaskExchange):
    """``generate_until_agentic``: the task's function answers each output with the next input, or ends it."""

    def open(self) -> Sequence[Request]:
        self._outputs: list[Any] = []
        self._info: Any = None
        self._visuals: Sequence[Any] | None = None
        self._context = self._first()
        self._rounds: list[dict[str, Any]] = []
        return [self._request(Ask(self._context, MessageBuilder(self.requests, self.doc_id)))]

    def advance(self, responses: Sequence[Response]) -> Sequence[Request]:
        self._responses += responses
        output = response_text(responses[0])
        self._outputs.append(output)
        step, asked = len(self._responses), self._context
        with self.requests.seeding.prompt(self.doc_id):
            goes_on, terminal = self._react(step)
        self._note(step, asked, output, terminal)
        if not goes_on or step >= int(self.requests.generation.get("max_agentic_steps", MAX_AGENTIC_STEPS)):
            return ()
        builder = MessageBuilder(
            self.requests, self.doc_id, MediaQuestion(self.requests.prompts, self._context, self._visuals), bare=True
        )
        return [self._request(Ask(self._context, builder, round=step))]

    def answer(self) -> Answer:
        last = self._outputs[-1] if self._outputs else ""
        final = last if isinstance(last, str) else str(last)
        if not final.lstrip().startswith("{") and self._info is not None:
            final = json.dumps(self._unfinished(), ensure_ascii=False, default=str)
        if self.requests.options.agentic_trace_mode == "full":
            final = self._traced(final)
        return self._answer(final)

    def observation(self) -> str:
        """Return the tool's result of the last step if the next input does not hold it."""
        last = self._rounds[-1] if self._rounds else {}
        found = last.get("tool_result")
        if found is None or found == "":
            return ""
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
        return "" if text in last.get("next_input", "") else text

    def _react(self, step: int) -> tuple[bool, bool]:
        """Call the function with the last output. It either gives the next input or ends the exchange."""
        made = self.requests.prompts.text(
            self.requests.documents[self.doc_id],
            previous_output=list(self._outputs),
            round_idx=step,
            previous_round_info=self._info,
        )
        if isinstance(made, str):
            self._context = made
            return True, False
        if not isinstance(made, tuple | list) or len(made) != 5:
            return False, True
        visuals, context, stop, outputs, info = made
        self._info = info
        if outputs is not None:
            self._outputs = list(outputs)
        if visuals is not None:
            self._visuals = visuals
        if context is not None:
            self._context = str(context)
        return not stop, bool(stop)

    def _note(self, step: int, asked: str, output: str, terminal: bool) -> None:
        info = self._info if isinstance(self._info, Mapping) else {}
        entry = {
            "round_idx": step,
            "round_input": asked,
            "model_output": output,
            "terminal": terminal,
            "state": info.get("state"),
            "tool_result": info.get("last_tool_result"),
            "tool_calls": info.get("tool_calls"),
            "valid_tool_calls": info.get("valid_tool_calls"),
            "invalid_steps": info.get("invalid_steps"),
        }
        self._rounds.append(entry if terminal else {**entry, "next_input": self._context})

    def _unfinished(self) -> dict[str, Any]:
        info = self._info if isinstance(self._info, Mapping) else {}
        counts = {key: float(info.get(key) or 0) for key in ("tool_calls", "valid_tool_calls", "invalid_steps")}
        return {
            "success": False,
            "error": "max_agentic_steps_reached",
            **counts,
            "state": info.get("state", {}),
            "last_model_output": self._rounds[-1]["model_output"],
            "trace": list(self._outputs),
        }

    def _traced(self, final: str) -> str:
        try:
            payload = json.loads(final)
        except ValueError:
            return final
        if not isinstance(payload, dict):
            return final
        payload |= {"agentic_trace_mode": "full", "agentic_rounds": self._rounds}
        return json.dumps(payload, ensure_ascii=False, default=str)

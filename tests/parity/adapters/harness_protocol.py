"""Chat messages and plugin outputs: ``harness/functions/protocol.jsonl``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pydantic

from lmms_eval.api.instance import unwrap_generation_output
from lmms_eval.api.messages import build_user_turn, visual_to_content
from lmms_eval.protocol import ChatMessages
from tests.parity.vectors import PASSED, Vector, Verdict, deviates, failed, line_adapter

ERRORS: dict[str, type[Exception]] = {"ValidationError": pydantic.ValidationError, "TypeError": TypeError}


def unwrap(output: Any) -> tuple[Any, Any]:
    found = unwrap_generation_output(output)
    return found.text, asdict(found.token_counts) if found.token_counts else None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "validate": lambda messages: ChatMessages(messages=messages),
    "extract_media": lambda messages: ChatMessages(messages=messages).extract_media(),
    "to_hf_messages": lambda messages, **kwargs: ChatMessages(messages=messages).to_hf_messages(**kwargs),
    "to_openai_messages": lambda messages, **kwargs: ChatMessages(messages=messages).to_openai_messages(**kwargs),
    "visual_to_content": visual_to_content,
    "build_user_turn": build_user_turn,
    "unwrap_generation_output": unwrap,
}


def decode(value: Any) -> Any:
    """``{"$tuple": [...]}`` as a tuple."""
    if isinstance(value, dict):
        return tuple(decode(item) for item in value["$tuple"]) if "$tuple" in value else {
            key: decode(item) for key, item in value.items()
        }  # fmt: skip
    return [decode(item) for item in value] if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Tuples as lists: which of the two a sequence is, makes no difference to those who unpack it."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


@line_adapter("harness/functions/protocol.jsonl")
def check(vector: Vector) -> Verdict:
    record = vector.record
    raises = record.get("raises")
    try:
        found = FUNCTIONS[record["function"]](*decode(record["args"]), **record["kwargs"])
    except tuple(ERRORS.values()) as error:
        if raises is not None and isinstance(error, ERRORS[raises]):
            return PASSED
        return failed(f"raised {error!r}")
    if raises is not None:
        return failed(f"gave {found!r} instead of raising {raises}")
    if record["function"] == "visual_to_content" and str(record["args"][0]).endswith(".webm"):
        wanted = {"type": "video", "url": record["args"][0]}
        return deviates("webm-is-video") if found == wanted else failed(f"{found!r} instead of {wanted!r}")
    expected = plain(decode(record["expected"]))
    return PASSED if plain(found) == expected else failed(f"{found!r} instead of {expected!r}")

"""A model that calls tools: its calls stand in the question, round by round, after ``CALLS=`` as JSON."""

from __future__ import annotations

import json
from typing import Any

Body = dict[str, Any]


def question(calls: list[list[tuple[str, Any]]], answer: str = "done") -> str:
    """Write the question to which these calls are made, then this answer. Texts as arguments go out as they are."""
    return f"ANSWER={answer}\nCALLS={json.dumps(calls)}"


def calls_of(body: Body) -> list[dict[str, Any]]:
    """Return the calls that a reply to this body makes."""
    _, found, plan = first_text(body).partition("CALLS=")
    if not found or not body.get("tools") or body.get("tool_choice") == "none":
        return []
    number = sum(1 for message in body["messages"] if message.get("tool_calls"))
    rounds = json.loads(plan)
    return [
        {"id": f"c{number}_{at}", "type": "function", "extra": {"signature": at}, "function": function(*call)}
        for at, call in enumerate(rounds[number] if number < len(rounds) else [])
    ]


def function(name: str, arguments: Any) -> dict[str, str]:
    return {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}


def first_text(body: Body) -> str:
    """Return the text of the first message of the user."""
    for message in body["messages"]:
        if message["role"] == "user":
            content = message["content"]
            return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
    return ""


def answer_of(body: Body) -> str:
    """Return the text after ``ANSWER=`` in the question."""
    return first_text(body).partition("ANSWER=")[2].partition("\n")[0]

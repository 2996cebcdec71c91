from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval.api.interleaved import generated_image
from lmms_eval.api.request import Request, Response
from lmms_eval.api.task import Answer, TaskOptions
from lmms_eval.errors import TaskError
from tests.cases import for_each
from tests.painting import png
from tests.tasks.kit import Function, converse, loaded, turns_of

ROUNDS = """
def text(doc, lmms_eval_specific_kwargs=None, previous_output=None, round_idx=None, previous_round_info=None):
    if round_idx is None:
        return doc["question"]
    stop = previous_output[-1] == doc["answer"]
    return ["more.png"], f"round {round_idx}", stop, previous_output, {"seen": round_idx, "before": previous_round_info}

def endless(doc, previous_output=None, round_idx=None, previous_round_info=None):
    return "x" if round_idx is None else ([], "again", False, None, None)

def short(doc, previous_output=None, round_idx=None, previous_round_info=None):
    return "x" if round_idx is None else ([], "again")

def messages(doc, round_idx=0, previous_output=None, previous_round_info=None):
    text = [{"role": "user", "content": [{"type": "text", "text": f"{doc['question']} {round_idx}"}]}]
    if not round_idx:
        return text
    return (None, True, previous_output + ["!"], None) if round_idx == 2 else (text, False, previous_output, "info")
"""
AGENT = """
def text(doc, previous_output=None, round_idx=None, previous_round_info=None):
    if round_idx is None:
        return "start"
    last = previous_output[-1]
    info = {"state": {"n": round_idx}, "tool_calls": round_idx}
    if last == "plain":
        return "plain next"
    if last == "stop":
        return None
    if last == "done":
        return None, None, True, ['{"success": true}'], info
    return ["shot.png"] if last == "look" else None, f"after {last}", False, None, info
"""


def loss(values: list[float], greedy: int = 0, is_loss: bool = False) -> Any:
    def reply(request: Request) -> Response:
        return Response(
            request.id, loglikelihood=values[request.index], is_greedy=request.index == greedy, is_loss=is_loss
        )

    return reply


def test_one_request(tmp_path: Path) -> None:
    answer, asked = converse(loaded(tmp_path), 0, lambda request: "blue", repeat=2)
    assert [request.id for request in asked] == ["probe/0/2/0/0"]
    assert (answer.value, answer.input, answer.error) == ("blue", "sky colour?", None)
    assert answer.usage[0] is not None and answer.usage[0].output_tokens == 2


def test_the_question_is_rendered_once(tmp_path: Path) -> None:
    code = "calls = []\ndef text(doc):\n    calls.append(doc)\n    return f'{doc[\"question\"]} {len(calls)}'\n"
    for changes in ({}, {"description": "Look. "}):
        task = loaded(tmp_path / str(len(changes)), {**changes, "doc_to_text": Function("utils.text")}, code)
        (request,) = task.exchange(0, 0).open()
        ((_, (text,)),) = turns_of(request)
        assert (text == request.context) == (not changes), "text in front of the question is not part of it"
        assert text.startswith("Look. " * len(changes) + "sky colour ")


def test_one_request_per_choice(tmp_path: Path) -> None:
    task = loaded(tmp_path, {"output_type": "multiple_choice", "doc_to_choice": "options", "metric_list": None})
    answer, asked = converse(task, 2, loss([-3.0, -1.0, -2.0], greedy=1))
    assert [(request.kind, request.index, request.continuation) for request in asked] == [
        ("loglikelihood", 0, " black"), ("loglikelihood", 1, " white"), ("loglikelihood", 2, " red"),
    ]  # fmt: skip
    assert {request.context for request in asked} == {"snow colour?"}
    assert asked[0].generation == {}
    assert answer.value == [[3.0, False], [1.0, True], [2.0, False]]
    assert answer.is_loss is False
    passed_on, _ = converse(task, 2, loss([3.0, 1.0, 2.0], greedy=1, is_loss=True))
    assert passed_on.value == answer.value and passed_on.is_loss


@for_each(
    ("changes", "plain", "templated"),
    [
        ({}, " black", "black"),
        ({"target_delimiter": " "}, " black", " black"),
        ({"target_delimiter": ""}, "black", "black"),
    ],
)
def test_the_delimiter_after_a_chat_template(
    tmp_path: Path, changes: dict[str, str], plain: str, templated: str
) -> None:
    choices = {"output_type": "multiple_choice", "doc_to_choice": "options", "metric_list": None}
    _, asked = converse(loaded(tmp_path, {**choices, **changes}), 2, loss([-3.0, -1.0, -2.0]))
    assert [asked[0].continuation_after(has_template) for has_template in (False, True)] == [plain, templated]


def test_a_delimiter_that_the_task_sets_is_another_run(tmp_path: Path) -> None:
    tasks = [loaded(tmp_path, changes) for changes in ({}, {"target_delimiter": " "}, {"target_delimiter": "\n"})]
    assert len({task.fingerprint()["config"] for task in tasks}) == 3
    assert [task.describe()["target_delimiter"] for task in tasks] == [" ", " ", "\n"]


def test_choices_as_contexts(tmp_path: Path) -> None:
    changes = {
        "output_type": "multiple_choice",
        "doc_to_choice": "options",
        "doc_to_text": "label",
        "metric_list": None,
    }
    _, asked = converse(loaded(tmp_path, changes), 0, loss([-1.0, -2.0]))
    assert [(request.context, request.continuation) for request in asked] == [("red", " blue"), ("blue", " blue")]
    assert turns_of(asked[1]) == [("user", ["blue"])]


def test_unconditional_requests_for_mutual_information(tmp_path: Path) -> None:
    metrics = [{"metric": "acc_mutual_info"}]
    task = loaded(tmp_path, {"output_type": "multiple_choice", "doc_to_choice": "options", "metric_list": metrics})
    answer, asked = converse(task, 0, loss([-1.0, -2.0, -1.0, -9.0]))
    assert [(request.index, request.context) for request in asked] == [
        (0, "sky colour?"), (2, ""), (1, "sky colour?"), (3, ""),
    ]  # fmt: skip
    assert len({request.id for request in asked}) == 4
    assert turns_of(asked[1]) == [("user", [""])]
    assert task.score(0, [answer]).scores[0].metrics == {"acc_mutual_info": 1.0}  # -2 + 9 beats -1 + 1


def test_likelihood_of_the_target(tmp_path: Path) -> None:
    task = loaded(tmp_path, {"output_type": "loglikelihood", "metric_list": None})
    answer, asked = converse(task, 0, loss([-0.5]))
    assert asked[0].continuation == "blue"
    assert answer.value == [[0.5, True]]
    assert task.score(0, [answer]).scores[0].metrics == {"perplexity": -0.5, "acc": 1.0}


def test_a_text_in_place_of_a_likelihood(tmp_path: Path) -> None:
    task = loaded(tmp_path, {"output_type": "loglikelihood", "metric_list": None})
    with pytest.raises(Exception, match="gave a text where the likelihood"):
        converse(task, 0, lambda request: "text")


def rounds(tmp_path: Path, function: str = "text", options: TaskOptions | None = None, **more: Any) -> Any:
    changes = {"output_type": "generate_until_multi_round", "doc_to_text": Function(f"utils.{function}"), **more}
    return loaded(tmp_path, changes, ROUNDS, options)


def test_rounds_go_on_until_the_function_stops(tmp_path: Path) -> None:
    task = rounds(tmp_path, options=TaskOptions(system_instruction="S"))
    replies = ["red", "green", "blue", "never"]
    answer, asked = converse(task, 0, lambda request: replies[request.round])
    assert answer.value == ["red", "green", "blue"]
    assert [request.id for request in asked] == ["probe/0/0/0/0", "probe/0/0/1/0", "probe/0/0/2/0"]
    assert [request.context for request in asked] == ["S\n\nsky colour", "round 1", "round 2"]
    assert turns_of(asked[1]) == [("system", ["S"]), ("user", ["image", "round 1"])]
    assert len(answer.usage) == 3 and answer.input == "S\n\nsky colour"
    assert task.score(0, [answer]).scores[0].metrics == {"exact_match": 1.0}  # the last round counts


def test_rounds_by_messages(tmp_path: Path) -> None:
    task = rounds(tmp_path, doc_to_messages=Function("utils.messages"))
    answer, asked = converse(task, 0, lambda request: f"a{request.round}")
    assert answer.value == ["a0", "a1", "!"]
    assert [turns_of(request) for request in asked] == [
        [("user", ["sky colour 0"])], [("user", ["sky colour 1"])],
    ]  # fmt: skip


@for_each(("function", "message"), [("endless", "did not stop after 1000"), ("short", "return 5 values")])
def test_rounds_that_go_wrong(tmp_path: Path, function: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        converse(rounds(tmp_path, function), 0, lambda request: "x")


def test_a_plugin_makes_its_rounds_itself(tmp_path: Path) -> None:
    task = rounds(tmp_path, options=TaskOptions(legacy=True))
    answer, asked = converse(task, 0, lambda request: Response(request.id, rounds=("red", "blue")))
    assert [request.kind for request in asked] == ["generate_until_multi_round"]
    assert answer.value == ["red", "blue"]


def agent(tmp_path: Path, steps: int = 3, mode: Any = "basic") -> Any:
    changes = {
        "output_type": "generate_until_agentic",
        "doc_to_text": Function("utils.text"),
        "generation_kwargs": {"max_agentic_steps": steps, "max_new_tokens": 8},
    }
    return loaded(tmp_path, changes, AGENT, TaskOptions(agentic_trace_mode=mode))


def play(task: Any, *replies: str) -> tuple[Any, list[Request]]:
    return converse(task, 0, lambda request: replies[request.round])


def test_an_agent_that_ends_by_itself(tmp_path: Path) -> None:
    answer, asked = play(agent(tmp_path), "look", "done")
    assert answer.value == '{"success": true}'
    assert [request.context for request in asked] == ["start", "after look"]
    assert turns_of(asked[1]) == [("user", ["image", "after look"])]
    assert "max_agentic_steps" not in asked[0].generation
    assert len(answer.usage) == 2


def test_an_agent_out_of_steps(tmp_path: Path) -> None:
    answer, asked = play(agent(tmp_path, steps=2), "a", "b")
    assert len(asked) == 2
    assert json.loads(answer.value) == {
        "success": False, "error": "max_agentic_steps_reached", "tool_calls": 2.0, "valid_tool_calls": 0.0,
        "invalid_steps": 0.0, "state": {"n": 2}, "last_model_output": "b", "trace": ["a", "b"],
    }  # fmt: skip


def test_plain_texts_go_on_and_anything_else_stops(tmp_path: Path) -> None:
    answer, asked = play(agent(tmp_path), "plain", "stop")
    assert [request.context for request in asked] == ["start", "plain next"]
    assert answer.value == "stop"


def test_the_full_trace(tmp_path: Path) -> None:
    answer, _ = play(agent(tmp_path, mode="full"), "a", "done")
    trace = json.loads(answer.value)
    assert trace["agentic_trace_mode"] == "full"
    assert [entry["round_input"] for entry in trace["agentic_rounds"]] == ["start", "after a"]
    assert [entry["terminal"] for entry in trace["agentic_rounds"]] == [False, True]
    assert trace["agentic_rounds"][0]["next_input"] == "after a" and "next_input" not in trace["agentic_rounds"][1]


def test_replaying_gives_the_same_requests(tmp_path: Path) -> None:
    task = agent(tmp_path)
    (first, asked), (second, again) = play(task, "a", "done"), play(task, "a", "done")
    assert first == second
    assert [(r.id, r.context, r.seed) for r in asked] == [(r.id, r.context, r.seed) for r in again]


VISUAL = """
def visual(doc):
    return [doc["question"] + ".png"]

def text(doc, lmms_eval_specific_kwargs=None, previous_output=None, round_idx=None, previous_round_info=None):
    pre = (lmms_eval_specific_kwargs or {}).get("pre", "")
    return pre + doc["question"] if round_idx is None else ([], pre + "more", True, previous_output, None)
"""
SETTINGS = {"doc_to_visual": Function("utils.visual"), "doc_to_text": Function("utils.text"),
            "lmms_eval_specific_kwargs": {"default": {"pre": "> "}}}  # fmt: skip


def test_arguments_of_class_plugins(tmp_path: Path) -> None:
    task = loaded(tmp_path, SETTINGS, VISUAL, TaskOptions(system_instruction="S", legacy=True))
    request = task.exchange(1, 0).open()[0]
    context, messages, generation, *place = task.legacy_arguments(request, chat=True)
    assert (context, place) == ("S\n\n> grass colour", [1, "probe", "test"])
    assert messages({"question": "other"})[0] == {"role": "system", "content": [{"type": "text", "text": "S"}]}
    assert messages({"question": "other"})[1]["content"] == [
        {"type": "image", "url": "other.png"}, {"type": "text", "text": "> other"},
    ]  # fmt: skip
    generation.pop("until")
    assert "until" in task.legacy_arguments(request, chat=True)[2]
    context, generation, visual, *place = task.legacy_arguments(request, chat=False)
    assert (context, visual({"question": "x"}), place) == ("S\n\n> grass colour", ["x.png"], [1, "probe", "test"])
    metadata = task.legacy_metadata(request)
    assert {"task": "probe", "doc_id": 1, "repeats": 1, "split": "test"}.items() <= dict(metadata).items()


def test_arguments_of_rounds(tmp_path: Path) -> None:
    changes = {**SETTINGS, "output_type": "generate_until_multi_round"}
    task = loaded(tmp_path, changes, VISUAL, TaskOptions(legacy=True, system_instruction="S"))
    request = task.exchange(0, 0).open()[0]
    simple = task.legacy_arguments(request, chat=False)
    assert len(simple) == 7 and simple[4:] == (0, "probe", "test")
    later = {"round_idx": 1, "previous_output": ["a"], "previous_round_info": None}
    assert simple[3]({"question": "q"}, **later) == ([], "> more", True, ["a"], None)
    chat = task.legacy_arguments(request, chat=True)
    assert len(chat) == 6 and len(chat[1]({"question": "q"})) == 2
    assert chat[1]({"question": "q"}, **later) == (None, True, ["a"], None)


def test_arguments_of_likelihoods(tmp_path: Path) -> None:
    task = loaded(tmp_path / "a", {"output_type": "multiple_choice", "doc_to_choice": "options", "metric_list": None})
    request = task.exchange(0, 0).open()[1]
    assert task.legacy_arguments(request, chat=False)[:2] == ("sky colour?", " blue")
    with pytest.raises(TaskError, match="likelihoods, which chat plugins cannot give: use --force_simple"):
        task.legacy_arguments(request, chat=True)
    single = loaded(tmp_path / "b", {"output_type": "loglikelihood", "metric_list": None})
    _, target, *_ = single.legacy_arguments(single.exchange(0, 0).open()[0], chat=False)
    assert target(single.document(0)) == "blue"


def test_arguments_of_agentic_steps(tmp_path: Path) -> None:
    task = agent(tmp_path)
    _, asked = play(task, "look", "done")
    context, generation, visual, *_ = task.legacy_arguments(asked[1], chat=False)
    assert (context, generation["max_new_tokens"], visual({})) == ("after look", 8, ["shot.png"])
    messages = task.legacy_arguments(asked[1], chat=True)[1]
    assert messages({})[0]["content"][0] == {"type": "image", "url": "shot.png"}


def test_pictures_stay_with_the_answer_of_every_kind_of_exchange(tmp_path: Path) -> None:
    image = generated_image(png(1))
    code = """
def text(doc, previous_output=None, **_):
    return (None, "go on", len(previous_output) > 1, None, None) if previous_output else "go"
"""

    def said(kind: str) -> Answer:
        changes = {"output_type": kind}
        if kind != "generate_until":
            changes["doc_to_text"] = Function("utils.text")
        task = loaded(tmp_path / kind, changes, code)
        return converse(task, 0, lambda request: Response.interleaved(request.id, [f"a{request.round}", image]))[0]

    assert (said("generate_until").value, said("generate_until").parts) == ("a0", ("a0", image))
    rounds = said("generate_until_multi_round")
    assert (rounds.value, rounds.parts) == (["a0", "a1"], ("a0", image, "a1", image))
    assert (said("generate_until_agentic").value, said("generate_until_agentic").parts) == ("a1", ("a1", image))

"""The adapter for plugins of the class interface."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval.api.instance import FailedGeneration, GenerationResult, Instance, TokenCounts
from lmms_eval.api.model import lmms
from lmms_eval.api.request import Request, Response, Thoughts
from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import LmmsEvalError, ModelError, TaskError
from lmms_eval.models.legacy import LegacyAdapter, TaskDict
from tests.cases import for_each
from tests.models.fakes import FakeTask, ListStream, answers


class Plugin(lmms):
    """Answers with the document; remembers its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[Instance]] = []

    def answer(self, instance: Instance) -> Any:
        _context, _generation, _doc_to_visual, doc_id, task, split = instance.args
        return f"{self.task_dict[task][split][doc_id]['answer']}!"

    def generate_until(self, requests: list[Instance]) -> list[Any]:
        self.calls.append(requests)
        return [self.answer(request) for request in requests]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        return [(float(request.idx), request.idx == 0) for request in requests]

    def generate_until_multi_round(self, requests: list[Instance]) -> list[Any]:
        return [["one", "two"] for _ in requests]


def docs(count: int) -> list[dict[str, Any]]:
    return [{"question": f"q{number}", "answer": f"a{number}", "choices": ["x", "y"]} for number in range(count)]


def adapted(plugin: lmms, task: FakeTask, **options: Any) -> LegacyAdapter:
    adapter = LegacyAdapter(plugin, **options)
    adapter.attach_tasks([task])
    return adapter


def test_answers_in_chunks_of_the_given_size() -> None:
    plugin, task = Plugin(), FakeTask(docs(5))
    found = answers(adapted(plugin, task, chunk_size=2), task.requests())
    assert [found[request.id].text for request in task.requests()] == ["a0!", "a1!", "a2!", "a3!", "a4!"]
    assert [len(call) for call in plugin.calls] == [2, 2, 1]
    assert task.data_sets_opened == 1


@for_each(
    ("batch_size", "own", "expected"), [(None, None, 8), (4, None, 32), ("auto", 2, 16), (None, 3, 24), ("2", 5, 16)]
)
def test_default_chunk_is_eight_batches(batch_size: Any, own: int | None, expected: int) -> None:
    plugin = Plugin()
    if own:
        plugin.batch_size_per_gpu = own  # type: ignore[attr-defined]
    assert LegacyAdapter(plugin, batch_size=batch_size).concurrency == expected


def test_a_plugin_that_keeps_many_requests_open_gets_larger_chunks() -> None:
    plugin = Plugin()
    plugin.num_concurrent = 32  # type: ignore[attr-defined]
    assert LegacyAdapter(plugin, batch_size=1).concurrency == 256
    assert LegacyAdapter(plugin, batch_size=64).concurrency == 512
    assert LegacyAdapter(plugin, chunk_size=3).concurrency == 3


def test_a_failed_place_of_the_list_fails_its_request_alone() -> None:
    class Failing(Plugin):
        def answer(self, instance: Instance) -> Any:
            failed = FailedGeneration("no answer in time", "timeout", 6)
            return failed if instance.doc_id == 1 else super().answer(instance)

    plugin, task = Failing(), FakeTask(docs(3))
    found = answers(adapted(plugin, task), task.requests())
    one = [found[request.id] for request in task.requests()]
    assert [response.text for response in one] == ["a0!", None, "a2!"]
    assert one[1].error is not None and one[1].attempts == 6 and len(plugin.calls) == 1
    assert (one[1].error.kind, one[1].error.message) == ("timeout", "no answer in time")


def test_the_seed_of_each_request_reaches_the_plugin() -> None:
    plugin, task = Plugin(), FakeTask(docs(2))
    requests = [replace(request, seed=7 + number) for number, request in enumerate(task.requests())]
    answers(adapted(plugin, task), requests)
    assert [instance.seed for instance in plugin.calls[0]] == [7, 8]


def test_chunk_size_must_be_positive() -> None:
    with pytest.raises(ModelError, match="chunk_size"):
        LegacyAdapter(Plugin(), chunk_size=0)


def test_instance_carries_metadata_and_its_own_generation_options() -> None:
    class Popping(Plugin):
        def answer(self, instance: Instance) -> str:
            return str(instance.args[1].pop("until"))

    plugin, task = Popping(), FakeTask(docs(2))
    shared = {"until": ["###"], "nested": {"k": [1]}}
    requests = [task.request(number, generation=shared) for number in range(2)]
    found = answers(adapted(plugin, task), requests)
    assert {response.text for response in found.values()} == {"['###']"}
    assert shared == {"until": ["###"], "nested": {"k": [1]}}
    instance = plugin.calls[0][1]
    assert (instance.task_name, instance.doc_id, instance.repeats) == ("fake", 1, 1)
    assert instance.metadata["split"] == "test" and instance.request_type == "generate_until"


def test_repeats_of_a_document_meet_in_one_chunk_in_order() -> None:
    class Counting(Plugin):
        def __init__(self) -> None:
            super().__init__()
            self.seen: dict[int | None, int] = {}

        def answer(self, instance: Instance) -> str:
            self.seen[instance.doc_id] = self.seen.get(instance.doc_id, -1) + 1
            return f"{instance.doc_id}:{self.seen[instance.doc_id]}"

    plugin, task = Counting(), FakeTask(docs(4), repeats=3)
    requests = task.requests()
    requests[0], requests[2] = requests[2], requests[0]
    found = answers(adapted(plugin, task, chunk_size=4), requests)
    assert [len(call) for call in plugin.calls] == [6, 6]
    assert [found[f"fake/0/{repeat}/0/0"].text for repeat in range(3)] == ["0:0", "0:1", "0:2"]


def test_tasks_and_kinds_do_not_meet_in_one_call() -> None:
    plugin = Plugin()
    first, second = FakeTask(docs(2), name="first"), FakeTask(docs(2), name="second")
    adapter = LegacyAdapter(plugin, chunk_size=8)
    adapter.attach_tasks([first, second])
    requests = [first.request(0), second.request(0), first.request(1), *first.choice_requests(1)[1:]]
    answers(adapter, requests)
    assert [[(item.task_name, item.doc_id) for item in call] for call in plugin.calls] == [
        [("first", 0), ("first", 1)],
        [("second", 0)],
    ]


def test_partial_results_come_before_the_chunk_ends() -> None:
    gate = threading.Event()

    class Partial(Plugin):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            out = []
            for number, request in enumerate(requests):
                if number == 1:
                    assert gate.wait(10)
                out.append(self.answer(request))
                self.cache_hook.add_partial("generate_until", (request.args[0], request.args[1]), out[-1])
            return out

    task = FakeTask(docs(3))
    stream = ListStream(task.requests())
    given = adapted(Partial(), task).respond(stream)
    first = next(iter(given))
    assert (first.request_id, first.text) == ("fake/0/0/0/0", "a0!")
    gate.set()
    assert [response.text for response in given] == ["a1!", "a2!"]


@for_each(
    ("method", "arguments", "result"),
    [
        ("generate_until", ("same", {}), "early"),
        ("generate_until", "unknown", "early"),
        ("generate_until", None, "early"),
        ("loglikelihood", "single", "early"),
        ("generate_until", "single", ["early", "list"]),
        ("generate_until", "single", None),
    ],
)
def test_partial_results_that_name_no_single_request_are_ignored(method: str, arguments: Any, result: Any) -> None:
    class Partial(Plugin):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            self.cache_hook.add_partial(method, arguments, result)
            return ["late"] * len(requests)

    task = FakeTask([{"question": question, "answer": ""} for question in ("same", "same", "single")])
    found = answers(adapted(Partial(), task), task.requests())
    assert [response.text for response in found.values()] == ["late"] * 3


def test_a_partial_result_under_the_requests_own_arguments_is_taken_with_all_that_it_tells() -> None:
    class Partial(Plugin):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            told = GenerationResult("early", None, (), "length", Thoughts("so far", is_finished=False))
            self.cache_hook.add_partial("generate_until", requests[1].args, told)
            return ["late"] * len(requests)

    task = FakeTask([{"question": question, "answer": ""} for question in ("same", "same")])
    told = answers(adapted(Partial(), task), task.requests())
    found = [told[name] for name in sorted(told)]
    assert [response.text for response in found] == ["late", "early"]
    assert [response.finish_reason for response in found] == [None, "length"]
    assert found[1].thoughts == Thoughts("so far", is_finished=False)


def test_partial_results_survive_a_failing_chunk_and_are_not_asked_again() -> None:
    class Partial(Plugin):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            self.calls.append(requests)
            if len(requests) > 1:
                self.cache_hook.add_partial("generate_until", requests[0].args[0], "early")
                raise RuntimeError("broken")
            return ["late"]

    plugin, task = Partial(), FakeTask(docs(3))
    found = answers(adapted(plugin, task), task.requests())
    assert [response.text for response in found.values()] == ["early", "late", "late"]
    assert [[item.doc_id for item in call] for call in plugin.calls] == [[0, 1, 2], [1], [2]]


def test_partial_results_after_the_call_are_ignored() -> None:
    hooks = []

    class Late(Plugin):
        def generate_until(self, requests: list[Instance]) -> list[Any]:
            hooks.append(self.cache_hook)
            return ["text" for _ in requests]

    task = FakeTask(docs(1))
    found = answers(adapted(Late(), task), task.requests())
    hooks[0].add_partial("generate_until", "q0", "too late")
    assert [response.text for response in found.values()] == ["text"]


def test_one_bad_request_costs_one_sample() -> None:
    class Failing(Plugin):
        def answer(self, instance: Instance) -> Any:
            if instance.doc_id == 1:
                raise ValueError("cannot read the picture")
            return super().answer(instance)

    task = FakeTask(docs(4))
    found = answers(adapted(Failing(), task), task.requests())
    assert [response.text for response in found.values()].count(None) == 1
    error = found["fake/1/0/0/0"].error
    assert error is not None and error.kind == "internal" and error.attempts == 2
    said, _, place = error.message.rpartition(" (")
    assert said == "the plugin's generate_until raised ValueError: cannot read the picture"
    assert place.partition(":")[0].endswith("test_legacy.py")


def test_the_traceback_of_a_plugin_is_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Plugin):
        def answer(self, instance: Instance) -> Any:
            return self._deep_inside(instance)

        def _deep_inside(self, instance: Instance) -> Any:
            raise ValueError("cannot read the picture")

    for level, count in (("INFO", 0), ("DEBUG", 1)):
        caplog.clear()
        task = FakeTask(docs(1))
        with caplog.at_level(level, logger="lmms_eval"):
            answers(adapted(Failing(), task), task.requests())
        assert caplog.text.count("in _deep_inside") == count


def test_all_failing_is_reported_for_each() -> None:
    class Failing(Plugin):
        def answer(self, instance: Instance) -> Any:
            raise type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory")

    task = FakeTask(docs(3))
    found = answers(adapted(Failing(), task), task.requests())
    assert [response.error and response.error.kind for response in found.values()] == ["out_of_memory"] * 3


def test_collective_plugins_are_not_asked_one_at_a_time() -> None:
    class Failing(Plugin):
        def answer(self, instance: Instance) -> Any:
            raise RuntimeError("broken")

    plugin, task = Failing(), FakeTask(docs(3))
    adapter = adapted(plugin, task)
    assert not adapter.collective_forward
    adapter.set_world(1, 4)
    assert (plugin.rank, plugin.world_size, adapter.collective_forward) == (1, 4, True)
    answers(adapter, task.requests())
    assert [len(call) for call in plugin.calls] == [3]
    plugin.data_parallel = True  # type: ignore[attr-defined]
    assert not adapter.collective_forward


class FiveElements(Plugin):
    is_simple = False

    def answer(self, instance: Instance) -> Any:
        doc_to_messages, _generation, doc_id, task, split = instance.args
        return doc_to_messages(self.task_dict[task][split][doc_id])[0]["content"][0]["text"]


def test_plugins_of_the_documentation_unpack_five() -> None:
    plugin, task = FiveElements(), FakeTask(docs(4))
    found = answers(adapted(plugin, task, chunk_size=2), task.requests())
    assert [response.text for response in found.values()] == ["q0", "q1", "q2", "q3"]
    assert [len(call[0].args) for call in plugin.calls] == [6, 5, 5]  # found out once, kept afterwards


def test_another_value_error_with_the_same_text_stays_a_failure() -> None:
    class Other(Plugin):
        is_simple = False

        def answer(self, instance: Instance) -> Any:
            _context, _doc_to_messages, _generation, doc_id, _task, _split = instance.args
            if doc_id == 0:
                _one, _two, _three, _four, _five = range(6)
            return "fine"

    task = FakeTask(docs(2))
    found = answers(adapted(Other(), task), task.requests())
    error = found["fake/0/0/0/0"].error
    assert error is not None and "too many values to unpack (expected 5)" in error.message
    assert found["fake/1/0/0/0"].text == "fine"


@for_each(
    ("returned", "message"),
    [
        (["one"], "returned 1 results for 2 requests"),
        (["one", "two", "three"], "returned 3 results for 2 requests"),
        (None, "returned a NoneType, not a list"),
        ("ab", "returned a str, not a list"),
        ([None, None], "returned None for a request"),
        ([["a"], ["b"]], "return a text"),
    ],
)
def test_outputs_that_do_not_fit_are_failures(returned: Any, message: str) -> None:
    class Wrong(Plugin):
        def generate_until(self, requests: list[Instance]) -> Any:
            return returned

    task = FakeTask(docs(2))
    found = answers(adapted(Wrong(), task), task.requests())
    assert all(response.error is not None and message in response.error.message for response in found.values())


def test_generation_results_bring_token_counts() -> None:
    class Counting(Plugin):
        def answer(self, instance: Instance) -> Any:
            if instance.doc_id == 0:
                return GenerationResult("text", TokenCounts(3, 2, 1))
            return ("text", {"input_tokens": 5})

    task = FakeTask(docs(2))
    found = answers(adapted(Counting(), task), task.requests())
    usage = [response.usage and response.usage.to_dict() for response in found.values()]
    assert usage == [
        {"input_tokens": 3, "output_tokens": 2, "reasoning_tokens": 1},
        {"input_tokens": 5, "output_tokens": None, "reasoning_tokens": None},
    ]


def test_generators_and_rounds() -> None:
    class Lazy(Plugin):
        def generate_until(self, requests: list[Instance]) -> Any:
            return (self.answer(request) for request in requests)

    task = FakeTask(docs(2))
    requests = [task.request(0), task.request(1, kind="generate_until_multi_round")]
    found = answers(adapted(Lazy(), task), requests)
    assert found["fake/0/0/0/0"].text == "a0!"
    assert found["fake/1/0/0/0"].rounds == ("one", "two")


def test_likelihoods_are_losses() -> None:
    task = FakeTask(docs(1), output_type="multiple_choice")
    found = answers(adapted(Plugin(), task), task.choice_requests(0))
    second = found["fake/0/0/0/1"]
    assert (second.loglikelihood, second.is_greedy, second.is_loss) == (1.0, False, True)


def test_a_likelihood_that_is_no_pair_is_a_failure() -> None:
    class Wrong(Plugin):
        def loglikelihood(self, requests: list[Instance]) -> Any:
            return ["text", (1.0, True)]

    task = FakeTask(docs(1), output_type="multiple_choice")
    found = answers(adapted(Wrong(), task), task.choice_requests(0))
    error = found["fake/0/0/0/0"].error
    assert error is not None and "must return (loss, is_greedy)" in error.message
    assert found["fake/0/0/0/1"].loglikelihood == 1.0


class Rolling(Plugin):
    """Gives the text's length; of an empty one something wrong."""

    def loglikelihood_rolling(self, requests: list[Instance]) -> Any:
        self.calls.append(requests)
        values = [-float(len(text)) for (text,) in (request.args for request in requests)]
        return [(value,) if value < -1 else value if value else "nothing" for value in values]


def test_likelihoods_of_whole_texts_are_greater_if_likelier() -> None:
    task, plugin = FakeTask(docs(3), output_type="loglikelihood_rolling"), Rolling()
    task.legacy_arguments = lambda request, chat: (request.continuation,)  # type: ignore[method-assign]
    model = adapted(plugin, task)
    asked = [
        task.request(number, kind="loglikelihood_rolling", continuation=text)
        for number, text in enumerate(("abc", "a", ""))
    ]
    found = list(answers(model, asked).values())
    assert [(one.loglikelihood, one.is_loss) for one in found[:2]] == [(-3.0, False), (-1.0, False)]
    error = found[2].error
    assert error is not None and "must return the log-likelihood of the text" in error.message
    assert len(plugin.calls) == 1


def test_only_a_plugin_that_defines_it_is_asked_for_whole_texts() -> None:
    assert "loglikelihood_rolling" in LegacyAdapter(Rolling()).kinds
    plain = Plugin()
    assert "loglikelihood_rolling" not in LegacyAdapter(plain).kinds
    with pytest.raises(NotImplementedError, match="Plugin gives no likelihoods of whole texts"):
        plain.loglikelihood_rolling([])


def test_a_plugin_without_likelihood_ends_the_run() -> None:
    class Chat(Plugin):
        def loglikelihood(self, requests: list[Instance]) -> Any:
            raise NotImplementedError("chat models have none")

    task = FakeTask(docs(1), output_type="multiple_choice")
    with pytest.raises(ModelError, match="does not implement loglikelihood: chat models have none"):
        answers(adapted(Chat(), task), task.choice_requests(0))


def test_not_implemented_below_generation_is_one_sample() -> None:
    class Deep(Plugin):
        def answer(self, instance: Instance) -> Any:
            raise NotImplementedError("operator not implemented")

    task = FakeTask(docs(1))
    found = answers(adapted(Deep(), task), task.requests())
    assert found["fake/0/0/0/0"].error is not None


@for_each(("raised", "seen"), [(SystemExit(0), LmmsEvalError), (KeyboardInterrupt(), KeyboardInterrupt)])
def test_what_ends_the_process_is_not_a_failed_sample(raised: BaseException, seen: type[BaseException]) -> None:
    class Ending(Plugin):
        def generate_until(self, requests: list[Instance]) -> Any:
            raise raised

    task = FakeTask(docs(2))
    with pytest.raises(seen):
        answers(adapted(Ending(), task), task.requests())


def test_building_arguments_may_fail_for_one_document() -> None:
    class Bad(FakeTask):
        def legacy_arguments(self, request: Any, chat: bool) -> tuple[Any, ...]:
            if request.doc_id == 0:
                raise KeyError("no such column")
            return super().legacy_arguments(request, chat)

    task = Bad(docs(2))
    found = answers(adapted(Plugin(), task), task.requests())
    error = found["fake/0/0/0/0"].error
    assert error is not None and "KeyError" in error.message
    assert found["fake/1/0/0/0"].text == "a1!"


class Templated(FakeTask):
    options = TaskOptions(apply_chat_template=True)

    def legacy_context_turns(self, request: Request) -> list[dict[str, str]]:
        return [{"role": "user", "content": request.context}]


def test_the_context_goes_through_the_plugins_chat_template() -> None:
    class Templating(Plugin):
        def apply_chat_template(self, turns: list[dict[str, str]]) -> str:
            return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns)

        def answer(self, instance: Instance) -> Any:
            return instance.args[0]

    task = Templated(docs(1))
    assert answers(adapted(Templating(), task), task.requests())["fake/0/0/0/0"].text == "<user>q0"
    with pytest.raises(ModelError, match="no apply_chat_template"):
        answers(adapted(Plugin(), task), task.requests())


def test_a_task_that_cannot_be_put_to_the_plugin_ends_the_run() -> None:
    class Refusing(FakeTask):
        def legacy_arguments(self, request: Request, chat: bool) -> tuple[Any, ...]:
            raise TaskError("use --force_simple")

    task = Refusing(docs(1))
    with pytest.raises(TaskError, match="force_simple"):
        answers(adapted(Plugin(), task), task.requests())


def test_plugins_may_use_an_event_loop_and_find_torch_as_their_constructor_left_it() -> None:
    torch = pytest.importorskip("torch")

    class Looping(Plugin):
        def answer(self, instance: Instance) -> Any:
            async def value() -> bool:
                return torch.is_grad_enabled()

            return str(asyncio.get_event_loop().run_until_complete(value()))

    task = FakeTask(docs(1))
    with torch.no_grad():
        adapter = adapted(Looping(), task)
    assert answers(adapter, task.requests())["fake/0/0/0/0"].text == "False"


def test_a_plugin_that_runs_a_loop_of_its_own_finds_one_in_its_next_call() -> None:
    class Running(Plugin):
        def answer(self, instance: Instance) -> Any:
            asyncio.get_event_loop()

            async def value() -> str:
                return "yes"

            return asyncio.run(value())  # leaves the thread without an event loop

    task = FakeTask(docs(3))
    found = answers(adapted(Running(), task, chunk_size=1), task.requests())
    assert [response.text for response in found.values()] == ["yes"] * 3


def test_closing_the_generator_ends_the_worker() -> None:
    task = FakeTask(docs(2))
    given = adapted(Plugin(), task, chunk_size=1).respond(ListStream(task.requests()))
    assert isinstance(next(given), Response)
    workers = [thread for thread in threading.enumerate() if thread.name == "legacy-plugin"]
    given.close()  # type: ignore[attr-defined]
    for thread in workers:
        thread.join(5)
    assert workers and not any(thread.is_alive() for thread in workers)


ENDLESS = """
import time
from lmms_eval.models.legacy import LegacyAdapter
from tests.models.fakes import FakeTask, answers
from tests.models.test_legacy import Plugin

class Endless(Plugin):
    def generate_until(self, requests):
        print("started", flush=True)
        time.sleep(120)

answers(LegacyAdapter(Endless()), FakeTask([{"question": "q", "answer": "a"}]).requests())
"""


def test_an_interrupt_does_not_wait_for_the_plugin() -> None:
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", ENDLESS], cwd=root, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors


def test_prepare_renders_nothing() -> None:
    task = FakeTask(docs(1))
    request = task.request(0)
    assert LegacyAdapter(Plugin()).prepare(request) is request


def test_task_dict_behaves_like_a_dictionary() -> None:
    task = FakeTask(docs(1))
    table = TaskDict([task])
    assert "fake" in table and list(table) == ["fake"] and len(table) == 1
    assert task.data_sets_opened == 0
    table["other"] = 5
    assert dict(table) == {"fake": {"test": task.docs}, "other": 5}
    del table["fake"]
    assert list(table) == ["other"]
    with pytest.raises(KeyError):
        table["fake"]


def test_identity_names_the_class_and_its_source() -> None:
    adapter = LegacyAdapter(Plugin())
    identity = adapter.identity()
    assert identity["class"] == "tests.models.test_legacy.Plugin" and len(identity["source"]) == 64
    assert adapter.describe()["model_backend"] == "tests.models.test_legacy.Plugin (simple)"
    adapter.close()


def test_tasks_without_the_class_interface_end_the_run() -> None:
    task = FakeTask(docs(1))
    request = task.request(0)
    task.legacy_arguments = None  # type: ignore[assignment,method-assign]
    with pytest.raises(ModelError, match="legacy_arguments"):
        answers(adapted(Plugin(), task), [request])

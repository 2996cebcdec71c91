"""Tasks of several rounds, with tools, examples, repeats and pictures, and a model that answers as told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from lmms_eval.api.model import Model, RequestStream
from lmms_eval.api.request import Request, RequestKind, Response, Usage
from lmms_eval.config import build_config
from lmms_eval.evaluation.run import run
from lmms_eval.evaluation.writing import RunReport
from lmms_eval.models.baseline import open_media
from tests.servers.stub import StubServer

UTILS = '''
from pathlib import Path

FOLDER = Path(__file__).parent


def doc_to_visual(doc):
    return [str(FOLDER / name) for name in doc["media"]]


def doc_to_messages(doc):
    """A picture at its mark."""
    before, after = doc["question"].split("<image>")
    picture = {"type": "image", "url": str(FOLDER / doc["media"][0])}
    content = [{"type": "text", "text": before}, picture, {"type": "text", "text": after}]
    return [{"role": "user", "content": content}]


def history(doc, round_idx=None, previous_output=None, previous_round_info=None):
    """Three rounds, each with all that was said before."""
    first = {"role": "user", "content": [
        {"type": "image", "url": str(FOLDER / doc["media"][0])}, {"type": "text", "text": doc["question"]},
    ]}
    if not round_idx:
        return [first]
    turns = [first]
    for number, said in enumerate(previous_output, 1):
        turns.append({"role": "assistant", "content": [{"type": "text", "text": said.strip()}]})
        turns.append({"role": "user", "content": [{"type": "text", "text": f"Look again, round {number}, please."}]})
    return turns, round_idx == 3, previous_output, None


def alone(doc, lmms_eval_specific_kwargs=None, round_idx=None, previous_output=None, previous_round_info=None):
    """Two rounds, the second without the first."""
    if not round_idx:
        return doc["question"]
    return None, f"You said {previous_output[-1]}. Are you sure?", round_idx == 2, None, None


def agent(doc, lmms_eval_specific_kwargs=None, previous_output=None, round_idx=None, previous_round_info=None):
    """A tool whose first result is sent, and whose last one ends the exchange."""
    if not round_idx:
        return doc["question"]
    result = {"weather": "rain" if round_idx == 1 else "<b>sun</b>"}
    info = {"last_tool_result": result, "state": {"step": round_idx}}
    if round_idx == 1:
        return None, 'The tool says {"weather": "rain"}. Go on.', False, previous_output, info
    return None, None, True, ['{"success": true}'], info


def read_rating(text):
    return int(text) if text.isdigit() else None


def doc_to_judge(doc, results):
    rating = "7" if doc["answer"] == "a0" else "cannot say"
    prompt = f"Rate the reply {results[0]!r}. <b>Reference</b>: {doc['answer']!r}. ANSWER={rating}"
    picture = str(FOLDER / doc["media"][0])
    return [{"name": "rating", "prompt": prompt, "reader": read_rating, "images": [picture]}]


def mean(values):
    return sum(value["score"] for value in values) / len(values)


def rated(doc, results, verdicts):
    rating = read_rating(verdicts["rating"].text or "") or 0
    return {"rating": {"score": rating / 10, "extracted": results[0], "votes": [rating]}}
'''
BASE = """
dataset_path: json
dataset_kwargs:
  data_files: {{test: talk.jsonl}}
test_split: test
doc_to_target: answer
doc_to_visual: !function talk_utils.doc_to_visual
generation_kwargs: {{max_new_tokens: 16}}
task: {name}
"""
EXACT = "metric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n"
RATED = """
doc_to_text: question
process_results: !function talk_utils.rated
doc_to_judge: !function talk_utils.doc_to_judge
metric_list:
  - {metric: rating, aggregation: !function talk_utils.mean, higher_is_better: true}
"""
TASKS = {
    "plain": "doc_to_text: question\n",
    "marked": "doc_to_text: question\ndoc_to_messages: !function talk_utils.doc_to_messages\n",
    "shots": "doc_to_text: question\nfewshot_split: test\nnum_fewshot: 1\nfewshot_config: {sampler: first_n}\n",
    "history": (
        "output_type: generate_until_multi_round\ndoc_to_text: question\n"
        "doc_to_messages: !function talk_utils.history\n"
    ),
    "alone": "output_type: generate_until_multi_round\ndoc_to_text: !function talk_utils.alone\n",
    "agent": "output_type: generate_until_agentic\ndoc_to_text: !function talk_utils.agent\n",
    "drawn": "output_type: generate_visual_cot\ngeneration_kwargs: {visual_cot: true}\ndoc_to_text: question\n",
    "repeated": (
        "doc_to_text: question\nrepeats: 3\nfilter_list:\n"
        "  - {name: first, filter: [{function: regex, regex_pattern: '(\\w+)'}, {function: take_first}]}\n"
        "  - {name: second, filter: [{function: regex, regex_pattern: '\\w+ (\\w+)'}, {function: take_first}]}\n"
    ),
}
QUESTION = "Here is a picture <image> of something. What is it?"


def talk_tasks(folder: Path, documents: int = 2) -> Path:
    """All tasks of ``TASKS`` over documents with a picture each."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "talk_utils.py").write_text(UTILS)
    rows: list[dict[str, Any]] = []
    for number in range(documents):
        Image.new("RGB", (60, 40), (90 * number % 256, 90, 160)).save(folder / f"p{number}.png")
        rows.append({"question": f"{QUESTION} ({number})", "answer": f"a{number}", "media": [f"p{number}.png"]})
    (folder / "talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, more in TASKS.items():
        (folder / f"{name}.yaml").write_text(BASE.format(name=name) + EXACT + more)
    (folder / "rated.yaml").write_text(BASE.format(name="rated") + RATED)
    return folder


class Speaker(Model):
    """Opens the media of what it is asked, as a server's client does, and answers as told."""

    kinds: frozenset[RequestKind] = frozenset({"generate_until", "generate_until_multi_round", "generate_visual_cot"})

    def __init__(self, answer: Callable[[Request], Response | str] = lambda request: f"a{request.doc_id}") -> None:
        self.answer = answer
        self.asked: list[str] = []

    def prepare(self, request: Request) -> Request:
        open_media(request.build_messages())
        return request

    def respond(self, stream: RequestStream) -> Iterator[Response]:
        while requests := stream.take(1):
            (request,) = requests
            self.asked.append(request.id)
            said = self.answer(request)
            yield Response(request.id, text=said, usage=Usage(7, 3)) if isinstance(said, str) else said

    def identity(self) -> dict[str, Any]:
        return {"name": "speaker"}


def talked(tmp: Path, task: str, model: Model | None = None, **over: Any) -> RunReport:
    """Run one of the tasks; ``tmp/tasks`` holds them, ``tmp/out`` the results."""
    if not (tmp / "tasks").exists():
        talk_tasks(tmp / "tasks")
    values = {
        "model": "speaker", "tasks": task, "include_path": str(tmp / "tasks"), "output_path": str(tmp / "out"),
        "log_samples": True, "timezone": "UTC", **over,
    }  # fmt: skip
    return run(build_config(values), model or Speaker())


def sample_rows(out: Path, task: str) -> list[dict[str, Any]]:
    """Rows of the newest samples file of a task."""
    path = sorted(out.rglob(f"*_samples_{task}.jsonl"))[-1]
    return [json.loads(line) for line in path.read_text().splitlines()]


def rated_run(tmp: Path, **over: Any) -> RunReport:
    """Run the judged task: the judge's replies to the second document cannot be read."""
    with StubServer() as server:
        judge = {"judge_model": "openai:stub", "judge_base_url": server.url, "judge_retries": 1, "judge_repeats": 2}
        return talked(tmp, "rated", **{**judge, **over})

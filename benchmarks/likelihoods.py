"""Compare likelihoods of a local model with lm-eval on the same task, model and batch size, and count their costs.

    python -m benchmarks.likelihoods --lm_eval ENV [--rounds 3]        # JSON on standard output; exit code 1 below 1.5
    python -m benchmarks.likelihoods --lm_eval ENV --only larger       # one part: small, larger or openai

``ENV`` is a virtual environment with lm-eval and the versions of torch and transformers of this one
(``pip install lm_eval==0.4.13 torch transformers accelerate``). The task has the shape of HellaSwag: 2,500 documents
with four endings each, contexts of some 50 to 100 tokens, endings of some 10 to 30. The models are Llamas with random
weights: ``small`` has two layers of width 32, so that the harness's own work is visible; ``larger`` has five layers of
width 256, so that the forward passes take most of the time, and 500 documents. Each harness runs in turn in a process
of its own, which evaluates few documents and then all by ``simple_evaluate``, with the same file of the task, on the
CPU, with one thread of torch. The figures are those of the second evaluation (loading the model, data, requests,
scoring, aggregation; here also journals and files of results): medians of the rounds. Likelihoods are compared one by
one.

The last part asks a stub server with the form of completions (``echo``) for the same likelihoods, and gives the
processor time of each: the quickest run less the quickest one over few documents.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.workload import Finished, run_command
from tests.models.openai.scoring_server import scoring_server

DOCUMENTS, FEW, ENDINGS, ROWS, BAR = 2500, 50, 4, 32, 1.5
PARTS = ("small", "larger", "openai")
MEASURED = {"small": DOCUMENTS, "larger": 500}
"""The number of documents with each model."""
SIZES = {
    "small": {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "initializer_range": 0.2},
    "larger": {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 5, "initializer_range": 0.05},
}
TASK = "bench_endings"
WORDS = ("water", "picture", "left", "right", "number", "between", "question", "because", "different", "together")
YAML = """
task: {task}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {rows}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{context}}}}"
doc_to_choice: endings
doc_to_target: label
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: acc_norm, aggregation: mean, higher_is_better: true}}
metadata: {{version: 1.0}}
"""


def write_task(folder: Path) -> None:
    """Write the task's rows, and its file in the layout of lm-eval's task folders."""
    source, tasks = random.Random(0), folder / "source" / "lm_eval" / "tasks"
    tasks.mkdir(parents=True)

    def text(least: int, most: int) -> str:
        return " ".join(source.choices(WORDS, k=source.randint(least, most)))

    with open(folder / "rows.jsonl", "w", encoding="utf-8") as file:
        for _ in range(DOCUMENTS):
            endings = [text(3, 8) for _ in range(ENDINGS)]
            row = {"context": text(15, 27), "endings": endings, "label": source.randrange(ENDINGS)}
            file.write(json.dumps(row) + "\n")
    (tasks / f"{TASK}.yaml").write_text(YAML.format(task=TASK, rows=folder / "rows.jsonl"), encoding="utf-8")


def write_models(folder: Path) -> dict[str, Any]:
    """Write the models, and return the lengths of the task's texts in its tokens."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from examples.build_tiny_model import build_tiny_vlm

    tokenizer = AutoTokenizer.from_pretrained(build_tiny_vlm(folder / "tiny"))
    for name, size in SIZES.items():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=400, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1,
            eos_token_id=2, **size,
        )  # fmt: skip
        LlamaForCausalLM(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()[:200]]
    contexts = [len(tokenizer(row["context"]).input_ids) for row in rows]
    endings = [len(tokenizer(" " + ending).input_ids) for row in rows for ending in row["endings"]]
    return {name: {"least": min(counts), "mean": statistics.fmean(counts), "most": max(counts)}
            for name, counts in (("context", contexts), ("ending", endings))}  # fmt: skip


def run_twice(evaluate: Callable[[int], dict[str, Any]], documents: int) -> None:
    """Evaluate few documents, then many, and print the times of the second run and its log-likelihoods as JSON."""
    evaluate(FEW)
    cpu, wall = time.process_time(), time.monotonic()
    made = evaluate(documents)
    times = {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}
    found = {}
    for sample in made["samples"][TASK]:
        for number, answer in enumerate(sample["filtered_resps"]):
            found[f"{sample['doc_id']}/{number}"] = -abs(float(answer[0]))
    print(json.dumps({**times, "accuracy": made["results"][TASK]["acc_norm,none"], "values": found}))


def ours(folder: Path, part: str) -> None:
    from lmms_eval.evaluator import simple_evaluate

    def evaluate(limit: int) -> dict[str, Any]:
        arguments = f"pretrained={folder / part},dtype=float32,device=cpu,batch_size={ROWS}"
        with tempfile.TemporaryDirectory() as out:
            return dict(
                simple_evaluate(
                    "hf_text", model_args=arguments, tasks=[TASK], limit=limit, output_path=out, log_samples=True
                )
            )

    run_twice(evaluate, MEASURED[part])


LM_EVAL = """
import json, sys, time

from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

folder, part, task = sys.argv[1:4]
rows, few, documents = map(int, sys.argv[4:])


def evaluate(limit):
    return simple_evaluate(
        model="hf", model_args=f"pretrained={folder}/{part},dtype=float32", tasks=[task], batch_size=rows, device="cpu",
        limit=limit, log_samples=True,
        task_manager=TaskManager(include_path=f"{folder}/source", include_defaults=False),
    )


evaluate(few)
cpu, wall = time.process_time(), time.monotonic()
made = evaluate(documents)
times = {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall}
found = {}
for sample in made["samples"][task]:
    for number, answer in enumerate(sample["filtered_resps"]):
        found[f"{sample['doc_id']}/{number}"] = float(answer[0])
print(json.dumps({**times, "accuracy": made["results"][task]["acc_norm,none"], "values": found}))
"""
"""The same with lm-eval, in the interpreter of its environment."""


def variables(folder: Path) -> dict[str, str]:
    names = ("HF_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
    return {
        **{name: str(folder / "home") for name in names}, "LMMS_EVAL_PACKS": str(folder / "packs"),
        "PYTHONPATH": str(Path(__file__).parents[1]), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false", "OPENAI_API_KEY": "of-nobody",
    }  # fmt: skip


def ended(command: Sequence[str], folder: Path) -> Finished:
    done = run_command(command, variables(folder), folder)
    if done.exit_code:
        raise SystemExit(f"{' '.join(command)}\n{done.output[-4000:]}")
    return done


def compared(folder: Path, part: str, lm_eval: Path | None, rounds: int) -> dict[str, Any]:
    """Run both harnesses in turn; return their figures and the greatest difference between their likelihoods."""
    script = folder / "with_lm_eval.py"
    script.write_text(LM_EVAL, encoding="utf-8")
    commands = {"lmms_eval": [sys.executable, "-m", "benchmarks.likelihoods", "--child", str(folder), "--only", part]}
    requests = MEASURED[part] * ENDINGS
    if lm_eval is not None:
        program = str(lm_eval / "bin" / "python")
        commands["lm_eval"] = [program, str(script), str(folder), part, TASK, str(ROWS), str(FEW), str(MEASURED[part])]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            done = ended(command, folder)
            found[name].append(json.loads(done.output.splitlines()[-1]) | {"peak_mb": done.peak_mb})
    values = {name: runs[0]["values"] for name, runs in found.items()}
    report: dict[str, Any] = {"requests": requests}
    for name, runs in found.items():
        shown = [{key: value for key, value in one.items() if key != "values"} for one in runs]
        wall, cpu = (statistics.median(one[unit] for one in runs) for unit in ("wall_s", "cpu_s"))
        report[name] = {"requests_per_s": requests / wall, "cpu_ms_per_request": 1000 * cpu / requests, "runs": shown}
    if lm_eval is not None:
        first, second = values.values()
        report["same_requests"] = first.keys() == second.keys() and len(first) == requests
        report["greatest_difference"] = max(abs(first[key] - second[key]) for key in first)
        report["throughput_ratio"] = report["lmms_eval"]["requests_per_s"] / report["lm_eval"]["requests_per_s"]
        report["cpu_ratio"] = report["lm_eval"]["cpu_ms_per_request"] / report["lmms_eval"]["cpu_ms_per_request"]
    return report


def asked_of_a_server(folder: Path, rounds: int) -> dict[str, Any]:
    """Return the processor time of a likelihood from a server of completions that echoes prompts of tokens."""

    def scores(tokens: list[int]) -> list[tuple[float, float]]:
        return [(-1.0, -0.5)] * (len(tokens) - 1)

    runs = []
    with scoring_server(scores=scores) as (url, bodies):
        arguments = f"model=stub,base_url={url},api=completions,tokenizer={folder / 'small'},num_concurrent={ROWS}"
        command = [
            sys.executable, "-m", "lmms_eval", "--model", "openai", "--model_args", arguments, "--tasks", TASK,
            "--log_samples", "--output_path",
        ]  # fmt: skip
        for number in range(rounds):
            few = ended([*command, str(folder / f"few-{number}"), "--limit", str(FEW)], folder)
            many = ended([*command, str(folder / f"many-{number}")], folder)
            runs.append({"few_cpu_s": few.cpu_s, "many_cpu_s": many.cpu_s, "many_wall_s": many.wall_s})
        asked = len(bodies)
    if asked != rounds * (DOCUMENTS + FEW) * ENDINGS:
        raise SystemExit(f"the server was asked {asked} times")
    cpu_s = min(one["many_cpu_s"] for one in runs) - min(one["few_cpu_s"] for one in runs)
    return {"cpu_ms_per_request": 1000 * cpu_s / ((DOCUMENTS - FEW) * ENDINGS), "runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lm_eval", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        ours(given.child, given.only[0])
        return
    report: dict[str, Any] = {"benchmark": "likelihoods", "rows": ROWS, "bar": BAR}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_task(folder)
        report["tokens"] = write_models(folder)
        add = [sys.executable, "-m", "lmms_eval", "packs", "add", str(folder / "source"), "--name", "bench"]
        ended(add, folder)
        for part in given.only:
            if part == "openai":
                report[part] = asked_of_a_server(folder, given.rounds)
            else:
                report[part] = compared(folder, part, given.lm_eval, given.rounds)
    print(json.dumps(report, indent=2))
    if any(report.get(part, {}).get("throughput_ratio", BAR) < BAR for part in MEASURED):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

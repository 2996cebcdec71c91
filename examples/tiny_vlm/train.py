"""Train the model that the package ships: ``python examples/tiny_vlm/train.py [--out FOLDER]``.

A Qwen2-VL of 0.9 million parameters, from random weights, on drawings made here; two CPU threads, some minutes.
The seed decides the result (up to floating point on another machine).
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "tiny_vlm")]
PACKAGE = EXAMPLES.parent / "lmms_eval"
DEFAULT_OUT = PACKAGE / "models" / "embedded"
EVALUATION = PACKAGE / "tasks" / "megabench" / "demo" / "data"
BATCH = 24
"""Cases in a step; each has up to four questions."""
CHUNK = 16
"""Batches that are drawn at once and sorted by length, so that little is padded."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training with its own drawings; optimizers and learning rates begin anew."""

    mixture: str
    """Name of a mixture in ``scenes``."""
    steps: int
    weighted: bool
    """Short replies weigh more than their share of tokens."""


STAGES = (Stage("BROAD", 700, weighted=False), Stage("NARROW", 760, weighted=True))


def batches(tokenizer: Any, mixture: str, seed: int) -> Iterator[Any]:
    import scenes
    from batches import CaseEncoder, collate
    from guard import Guard

    random, guard, encoder = Random(seed), Guard(EVALUATION), CaseEncoder(tokenizer)
    chances = getattr(scenes, mixture)
    while True:
        rows = [encoder.encode(scenes.draw_case(random, guard, chances)) for _ in range(CHUNK * BATCH)]
        rows.sort(key=lambda row: len(row.ids))
        groups = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        random.shuffle(groups)
        for group in groups:
            yield collate(group, tokenizer.pad_token_id)


def optimizers(model: Any) -> list[Any]:
    """Muon for the matrices, AdamW for embeddings, patches, norms and biases."""
    import torch

    matrices = [value for name, value in model.named_parameters() if value.ndim == 2 and "embed_tokens" not in name]
    chosen = {id(value) for value in matrices}
    others = [value for value in model.parameters() if id(value) not in chosen]
    return [
        torch.optim.Muon(matrices, lr=0.012, weight_decay=0.01, momentum=0.95, adjust_lr_fn="original"),
        torch.optim.AdamW(others, lr=0.004, weight_decay=0.0, betas=(0.9, 0.97)),
    ]


def loss_of(model: Any, batch: Any, weighted: bool) -> Any:
    """Cross-entropy of the replies' tokens."""
    from torch.nn.functional import cross_entropy

    hidden = model.model(**batch.inputs, use_cache=False).last_hidden_state
    logits = model.lm_head(hidden[:, :-1].reshape(-1, hidden.shape[-1])[batch.chosen])
    if not weighted:
        return cross_entropy(logits, batch.targets)
    return (cross_entropy(logits, batch.targets, reduction="none") * batch.weights).sum()


def train(model: Any, tokenizer: Any, stage: Stage, seed: int) -> None:
    import torch

    used = optimizers(model)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(one, lambda step: min(1, (step + 1) / 40, (1 - step / stage.steps) * 1.6))
        for one in used
    ]
    start, total = time.perf_counter(), 0.0
    model.train()
    for step, batch in enumerate(itertools.islice(batches(tokenizer, stage.mixture, seed), stage.steps), start=1):
        loss = loss_of(model, batch, stage.weighted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for one in [*used, *schedules]:
            one.step()
        model.zero_grad(set_to_none=True)
        total += float(loss.detach())
        if step % 20 == 0:
            print(f"{stage.mixture} {step}  loss {total / 20:.3f}  {time.perf_counter() - start:.0f} s", flush=True)
            total = 0.0


def build(seed: int) -> tuple[Any, Any]:
    """The tokenizer, fitted to drawn prompts and replies, and the model with random weights."""
    import parts
    from scenes import BROAD, draw_case

    random = Random(seed)
    cases = [draw_case(random, lambda _: True, BROAD) for _ in range(4000)]
    tokenizer = parts.build_tokenizer(
        text for case in cases for turn in case.turns for text in (turn.prompt, turn.reply)
    )
    return tokenizer, parts.build_model(tokenizer)


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """In half precision."""
    import parts
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    model.eval().to(torch.float16).save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # the library leaves it to the owner alone
    parts.save_processor(tokenizer, folder)


def load(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and model of a stage, in single precision."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return tokenizer, AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start", type=Path, help="folder that the first stage wrote: only the second stage runs")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    tokenizer, model = load(arguments.start) if arguments.start else build(arguments.seed)
    print(f"{sum(value.numel() for value in model.parameters()):,} parameters, {len(tokenizer)} tokens", flush=True)
    for number, stage in enumerate(STAGES):
        if arguments.start and number == 0:
            continue
        train(model, tokenizer, stage, arguments.seed + number)
        save(model, tokenizer, arguments.out)
        tokenizer, model = load(arguments.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

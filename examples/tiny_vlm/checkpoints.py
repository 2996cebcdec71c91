"""Score checkpoints of a training: ``python examples/tiny_vlm/checkpoints.py FILE [--steps 200] [--every 40]``.

The training of the shipped model goes into a further round of the second stage of ``train.py``, whose learning rate
begins high again. At successive steps the model answers the same fresh questions; a reply scores 1 if greedy generation
writes it exactly. ``python -m benchmarks.anchored --only checkpoints --scores FILE`` reports what earlier checkpoints
are worth as anchors of later ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "tiny_vlm")]
EMBEDDED = EXAMPLES.parent / "lmms_eval" / "models" / "embedded"
AT_ONCE = 16


def fresh_cases(questions: int) -> list[Any]:
    """Return drawings with this many questions at least, which the training does not see."""
    from guard import Guard
    from mixture import draw_case
    from train import EVALUATION

    random, guard, found = Random(99), Guard(EVALUATION), list[Any]()
    while sum(len(case.turns) for case in found) < questions:
        found.append(draw_case(random, guard))
    return found


def exact_replies(model: Any, tokenizer: Any, cases: Sequence[Any]) -> list[float]:
    """Return 1 or 0 for each question: whether each token of the reply is the likeliest one."""
    import torch
    from batches import CaseEncoder, collate
    from train import reply_logits

    encoder, found = CaseEncoder(tokenizer), list[float]()
    for start in range(0, len(cases), AT_ONCE):
        some = cases[start : start + AT_ONCE]
        batch = collate([encoder.encode(case) for case in some], tokenizer.pad_token_id)
        with torch.inference_mode():
            grids = batch.inputs["image_grid_thw"]
            seen = model.model.visual(batch.inputs["pixel_values"], grid_thw=grids).pooler_output
            correct = iter((reply_logits(model, batch, seen).argmax(dim=-1) == batch.targets).tolist())
        for turn in (turn for case in some for turn in case.turns):
            length = len(tokenizer(turn.reply, add_special_tokens=False)["input_ids"]) + 1
            found.append(float(all([next(correct) for _ in range(length)])))
    return found


def scores_by_step(steps: int, every: int, questions: int) -> dict[int, list[float]]:
    """Train, and score the model after each ``every`` steps."""
    import parts
    import torch
    from heads import Heads
    from train import Stage, stages, train
    from transformers import AutoModelForImageTextToText

    torch.set_num_threads(1)
    torch.manual_seed(20)
    tokenizer = parts.build_tokenizer()
    model = AutoModelForImageTextToText.from_pretrained(EMBEDDED, dtype=torch.float32)
    cases = fresh_cases(questions)
    found: dict[int, list[float]] = {}

    def watched(batches: Iterator[Any]) -> Iterator[Any]:
        for step, batch in enumerate(batches):
            if step and step % every == 0:
                model.eval()
                found[step] = exact_replies(model, tokenizer, cases)
                print(f"step {step}: {sum(found[step]) / len(found[step]):.3f}", flush=True)
                model.train()
            yield batch

    given = Namespace(looks=0, answers=steps + 1, seed=20)
    *_, (modules, stage) = stages(model, Heads(model.model.visual), tokenizer, given)
    train(modules, Stage(stage.name, stage.steps, watched(stage.batches), stage.loss))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, metavar="FILE", help="JSON file: the scores of each question, by step")
    parser.add_argument("--steps", type=int, default=200, help="steps of the training")
    parser.add_argument("--every", type=int, default=40, help="steps between checkpoints")
    parser.add_argument("--questions", type=int, default=1000, help="fresh questions, at least")
    given = parser.parse_args()
    given.out.write_text(json.dumps(scores_by_step(given.steps, given.every, given.questions)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Anchors from earlier checkpoints of one training: R², and the questions that a later checkpoint needs.

The training of the shipped model goes into a further round of the second stage of ``examples/tiny_vlm/train.py``, whose
learning rate begins high again. At successive steps the model answers the same fresh questions; a reply scores 1 if
greedy generation writes it exactly. Then each checkpoint is the new run, and checkpoints before it are its anchors.
Prints JSON.

    python -m benchmarks.checkpoints [--steps 200] [--every 40] [--questions 1000] [--scores FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.looks import Floats
from lmms_eval.evaluation.anchors import fitted
from lmms_eval.stats import Sampled
from lmms_eval.utils.numbers import ScoreRange

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
EMBEDDED = EXAMPLES.parent / "lmms_eval" / "models" / "embedded"
AT_ONCE, ORDERS, HALF_WIDTHS = 16, 20, (0.05, 0.03)
Scores = Mapping[int, Sequence[float]]


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
    sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "tiny_vlm")]
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
                print(f"step {step}: {np.mean(found[step]):.3f}", file=sys.stderr, flush=True)
                model.train()
            yield batch

    given = Namespace(looks=0, answers=steps + 1, seed=20)
    *_, (modules, stage) = stages(model, Heads(model.model.visual), tokenizer, given)
    train(modules, Stage(stage.name, stage.steps, watched(stage.batches), stage.loss))
    return found


def questions_needed(scores: Floats, shares: Floats | None, half_width: float) -> float:
    """Return the median share of the questions after which half the width of the interval is small enough."""
    total, found = len(scores), []
    drawn = scores if shares is None else (scores - shares + 1) / 2
    width = 1.0 if shares is None else 2.0
    for seed in range(ORDERS):
        sampled = Sampled(total, ScoreRange(0, 1), 0.95)
        for count, place in enumerate(np.random.default_rng(seed).permutation(total), start=1):
            share = float(drawn[place])
            sampled.add(share, share)
            if count % 10 == 0:
                one = sampled.interval()
                if width * (one.high - one.low) / 2 <= half_width:
                    break
        found.append(count / total)
    return float(np.median(found))


def curve(scores: Scores) -> list[dict[str, Any]]:
    """Return, for each checkpoint, what no anchors, the checkpoint before it, and all before it are worth."""
    rows: list[dict[str, Any]] = []
    for place, step in enumerate(scores):
        own = np.array(scores[step])
        earlier = [dict(enumerate(scores[one])) for one in [*scores][:place]]
        for name, runs in (
            ("none", []),
            ("the one before", earlier[-1:]),
            ("all before", earlier if place > 1 else []),
        ):
            if name != "none" and not runs:
                continue
            fit = fitted(runs, range(len(own))) if runs else None
            shares = None if fit is None else np.array([*fit.shares.values()])
            rows.append({
                "step": step, "score": round(float(own.mean()), 3), "anchors": name, "runs": len(runs),
                "fit": None if fit is None else fit.name,
                "r_squared": None if shares is None else round(1 - float((own - shares).var() / own.var()), 3),
                "share_asked": {str(half): round(questions_needed(own, shares, half), 3) for half in HALF_WIDTHS},
            })  # fmt: skip
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of the training")
    parser.add_argument("--every", type=int, default=40, help="steps between checkpoints")
    parser.add_argument("--questions", type=int, default=1000, help="fresh questions, at least")
    parser.add_argument("--scores", type=Path, help="JSON file: written, or read if it exists, instead of training")
    given = parser.parse_args()
    if given.scores is not None and given.scores.is_file():
        scores: Scores = {int(step): row for step, row in json.loads(given.scores.read_text()).items()}
    else:
        scores = scores_by_step(given.steps, given.every, given.questions)
        if given.scores is not None:
            given.scores.write_text(json.dumps(scores))
    report = {"benchmark": "checkpoints", "questions": len(next(iter(scores.values()))), "checkpoints": curve(scores)}
    print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

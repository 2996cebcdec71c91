"""Count exact replies on fresh drawings, task by task: ``python examples/tiny_vlm/check.py [--model FOLDER]``.

The seed differs from the training's, and the evaluation's pictures are refused here too. This measures what the model
learned on many more drawings than the demo has. A reply counts if each of its tokens is the likeliest one given those
before it, that is, if greedy generation writes it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from random import Random

EXAMPLES = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "tiny_vlm")]
DEFAULT = EXAMPLES.parent / "lmms_eval" / "models" / "embedded"
AT_ONCE = 16


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=DEFAULT)
    parser.add_argument("--seed", type=int, default=99)
    parser.add_argument("--cases", type=int, default=1600)
    parser.add_argument("--blind", action="store_true", help="white pictures: what can be guessed from the question")
    arguments = parser.parse_args()
    import torch
    from batches import CaseEncoder, collate
    from cases import TASK_BY_NAME
    from guard import Guard
    from mixture import draw_case
    from train import EVALUATION, reply_logits
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    model = AutoModelForImageTextToText.from_pretrained(arguments.model, dtype=torch.float32).eval()
    random, guard, encoder = Random(arguments.seed), Guard(EVALUATION), CaseEncoder(tokenizer)
    names = {task.description: name for name, task in TASK_BY_NAME.items()}
    right, asked = Counter[str](), Counter[str]()
    for _ in range(0, arguments.cases, AT_ONCE):
        cases = [draw_case(random, guard) for _ in range(AT_ONCE)]
        batch = collate([encoder.encode(case) for case in cases], tokenizer.pad_token_id)
        if arguments.blind:
            batch.inputs["pixel_values"].fill_(1.0)
        with torch.inference_mode():
            seen = model.model.visual(
                batch.inputs["pixel_values"], grid_thw=batch.inputs["image_grid_thw"]
            ).pooler_output
            chosen = reply_logits(model, batch, seen).argmax(dim=-1)
        correct = iter((chosen == batch.targets).tolist())
        for case in cases:
            for turn in case.turns:
                name = names[turn.prompt.split("\n")[0]]
                length = len(tokenizer(turn.reply, add_special_tokens=False)["input_ids"]) + 1
                asked[name] += 1
                right[name] += all([next(correct) for _ in range(length)])
    for name in TASK_BY_NAME:
        if asked[name]:
            print(f"{name:24s} {right[name] / asked[name]:.2f} of {asked[name]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

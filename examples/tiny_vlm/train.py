"""Train the model that the package ships: ``python examples/tiny_vlm/train.py [--out FOLDER]``.

The model is a Qwen3-VL of under a million parameters, trained from random weights on our own drawings, with two CPU
threads in some minutes. First the vision encoder alone learns the contents of each part of a picture, then the whole
model learns to answer. The seed determines the result (up to floating point on another machine).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "tiny_vlm")]
PACKAGE = EXAMPLES.parent / "lmms_eval"
DEFAULT_OUT = PACKAGE / "models" / "embedded"
EVALUATION = PACKAGE / "tasks" / "megabench" / "demo" / "data"
LOOKS, BATCH = 32, 24
"""Pictures per step of the first stage; cases per step of the second, each with up to six questions."""
CHUNK = 16
"""Number of batches that are drawn together and sorted by length, so that little is padded."""
REPORT_EVERY, WARM_UP = 20, 40


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the training, with new optimizers and learning rates."""

    name: str
    steps: int
    batches: Iterator[Any]
    loss: Callable[[Any, float], Any]
    """Loss of a batch, at a time between 0 and 1."""


def looks(seed: int) -> Iterator[Any]:
    from batches import look_at
    from guard import Guard
    from mixture import draw_scene

    random, guard = Random(seed), Guard(EVALUATION)
    while True:
        yield look_at([draw_scene(random, guard).picture for _ in range(LOOKS)])


def questions(tokenizer: Any, seed: int) -> Iterator[Any]:
    from batches import CaseEncoder, collate
    from guard import Guard
    from mixture import draw_case

    random, guard, encoder = Random(seed), Guard(EVALUATION), CaseEncoder(tokenizer)
    while True:
        rows = [encoder.encode(draw_case(random, guard)) for _ in range(CHUNK * BATCH)]
        rows.sort(key=lambda row: len(row.ids))
        groups = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        random.shuffle(groups)
        for group in groups:
            yield collate(group, tokenizer.pad_token_id)


def ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the same batches, preparing the next one while one is used."""
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, batches)
        while True:
            batch, following = following.result(), pool.submit(next, batches)
            yield batch


def optimizers(modules: Any) -> list[Any]:
    """Return Muon for the matrices and AdamW for embeddings, patches, norms, biases and heads."""
    import torch

    named = list(modules.named_parameters())
    matrices = [value for name, value in named if value.ndim == 2 and "embed" not in name and "heads" not in name]
    chosen = {id(value) for value in matrices}
    others = [value for _, value in named if id(value) not in chosen]
    return [
        torch.optim.Muon(matrices, lr=0.012, weight_decay=0.01, momentum=0.95, adjust_lr_fn="original"),
        torch.optim.AdamW(others, lr=0.004, weight_decay=0.0, betas=(0.9, 0.97)),
    ]


def reply_logits(model: Any, batch: Any, seen: Any) -> Any:
    """Return the logits of the tokens to learn, ``[tokens, vocabulary]``, given the output of the vision encoder."""
    ids = batch.inputs["input_ids"]
    embedded = model.model.language_model.embed_tokens(ids)
    embedded = embedded.masked_scatter((ids == model.config.image_token_id)[..., None], seen)
    hidden = model.model.language_model(
        inputs_embeds=embedded, attention_mask=batch.inputs["attention_mask"],
        position_ids=batch.inputs["position_ids"], use_cache=False,
    ).last_hidden_state  # fmt: skip
    return model.lm_head(hidden[:, :-1].reshape(-1, hidden.shape[-1])[batch.chosen])


def pace(when: float) -> float:
    """Return the learning rate's factor: 1 for a while, then falling to 0 at time 1."""
    return min(1.0, (1 - when) * 1.6)


def train(modules: Any, stage: Stage) -> None:
    import torch

    used = optimizers(modules)
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(one, lambda step: min((step + 1) / WARM_UP, pace(step / stage.steps)))
        for one in used
    ]
    start, total = time.perf_counter(), 0.0
    modules.train()
    for step, batch in zip(range(stage.steps), stage.batches, strict=False):
        loss = stage.loss(batch, step / stage.steps)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(modules.parameters(), 1.0)
        for one in [*used, *schedules]:
            one.step()
        modules.zero_grad(set_to_none=True)
        total += float(loss.detach())
        if (step + 1) % REPORT_EVERY == 0:
            taken = time.perf_counter() - start
            print(f"{stage.name} {step + 1}  loss {total / REPORT_EVERY:.3f}  {taken:.0f} s", flush=True)
            total = 0.0


def stages(model: Any, heads: Any, tokenizer: Any, arguments: argparse.Namespace) -> Iterator[tuple[Any, Stage]]:
    """Return the stages: the weight of the labels relative to the replies falls with the pace."""
    import torch

    eye = model.model.visual

    def look(batch: Any, _: float) -> Any:
        return heads(eye(batch.pixels, grid_thw=batch.grids).pooler_output, batch.labels)

    def answer(batch: Any, when: float) -> Any:
        seen = eye(batch.inputs["pixel_values"], grid_thw=batch.inputs["image_grid_thw"]).pooler_output
        losses = torch.nn.functional.cross_entropy(reply_logits(model, batch, seen), batch.targets, reduction="none")
        return (losses * batch.weights).sum() + pace(when) * heads(seen, batch.labels)

    yield (
        torch.nn.ModuleDict({"eye": eye, "heads": heads}),
        Stage("look", arguments.looks, ahead(looks(arguments.seed)), look),
    )
    yield (
        torch.nn.ModuleDict({"model": model, "heads": heads}),
        Stage("answer", arguments.answers, ahead(questions(tokenizer, arguments.seed + 1)), answer),
    )


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Save the model in half precision."""
    import parts
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    model.eval().to(torch.float16).save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # the library makes it readable only by the owner
    parts.save_processor(tokenizer, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--looks", type=int, default=800, help="steps of the first stage")
    parser.add_argument("--answers", type=int, default=1200, help="steps of the second")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # a waiting thread gives up its core
    import parts
    import torch
    from heads import Heads

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    tokenizer = parts.build_tokenizer()
    model = parts.build_model(tokenizer)
    print(f"{sum(value.numel() for value in model.parameters()):,} parameters, {len(tokenizer)} tokens", flush=True)
    for modules, stage in stages(model, Heads(model.model.visual), tokenizer, arguments):
        train(modules, stage)
    save(model, tokenizer, arguments.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

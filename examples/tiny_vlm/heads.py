"""Heads that predict labels from the vision encoder; only the training uses them."""

from __future__ import annotations

from typing import Any

import torch
from labels import CLASSES, LETTERS, LETTERS_A_TOKEN, UNKNOWN
from torch.nn.functional import cross_entropy

EARLY = 1
"""Letters are already predicted after this block, so that the later blocks can form words from them."""


class Heads(torch.nn.Module):
    """Linear heads after the vision encoder and after one of its blocks."""

    def __init__(self, eye: Any) -> None:
        super().__init__()
        width, merged = eye.config.hidden_size, eye.config.hidden_size * eye.config.spatial_merge_size**2
        self.norm = torch.nn.LayerNorm(width)
        self.early = torch.nn.Linear(merged, LETTERS_A_TOKEN * (len(LETTERS) + 1))
        self.late = torch.nn.Linear(eye.config.out_hidden_size, sum(CLASSES.values()))
        self._within: Any = None
        eye.blocks[EARLY].register_forward_hook(self._keep)

    def _keep(self, _block: Any, _given: Any, found: Any) -> None:
        self._within = found

    def forward(self, seen: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of the labels predicted from ``seen``, the encoder's last output, ``[tokens, width]``."""
        within = self.early(self.norm(self._within).reshape(len(seen), -1))
        letters = [number for number, name in enumerate(CLASSES) if name.startswith("letter")]
        early = _loss(within, labels[:, letters], [len(LETTERS) + 1] * len(letters))
        return _loss(self.late(seen), labels, list(CLASSES.values())) + early / 4


def _loss(logits: torch.Tensor, labels: torch.Tensor, classes: list[int]) -> torch.Tensor:
    """Return the mean cross-entropy over the kinds of labels."""
    losses = []
    for one, wanted in zip(logits.split(classes, dim=1), labels.unbind(dim=1), strict=True):
        told = wanted != UNKNOWN
        if bool(told.any()):
            losses.append(cross_entropy(one[told], wanted[told]))
    return torch.stack(losses).sum() / len(classes) if losses else logits.sum() * 0

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.errors import UsageError
from lmms_eval.utils import get_dtype, stop_sequences_criteria

torch = pytest.importorskip("torch")


class Letters:
    """A tokenizer of one letter a token."""

    def batch_decode(self, ids: Any) -> list[str]:
        return ["".join(map(chr, row)) for row in ids.tolist()]


def test_dtypes() -> None:
    assert get_dtype("bfloat16") is get_dtype("torch.bfloat16") is torch.bfloat16
    assert get_dtype("auto") == "auto"
    assert get_dtype(torch.float16) is torch.float16
    for wrong in ("float17", "nn"):
        with pytest.raises(UsageError, match=wrong):
            get_dtype(wrong)


def test_each_sequence_stops_by_itself() -> None:
    pytest.importorskip("transformers")
    criteria = stop_sequences_criteria(Letters(), ["END", ""], initial_decoder_input_length=3, batch_size=2)

    def done(*rows: str) -> list[bool]:
        return criteria(torch.tensor([[ord(c) for c in row] for row in rows]), None).tolist()

    assert done("END", "END") == [False, False]  # the prompt is not searched
    assert done("ENDxEND", "ENDxEN.") == [True, False]
    assert done("ENDxENDzzzz", "ENDxEN.zEND") == [True, True]
    assert done("ENDxENDzzzzzzzz", "ENDxEN.zEND....") == [True, True]  # what has stopped stays stopped

import pytest

from lmms_eval.errors import ModelError
from lmms_eval.judges.internvl.loading import InternVLOptions
from tests.cases import for_each


def test_texts_of_the_command_line_are_read():
    found = InternVLOptions.from_arguments(
        {"pretrained": "M", "trust_remote_code": "true", "max_tiles": "6", "dtype": "torch.float32", "spread": False}
    )
    assert found == InternVLOptions("M", trust_remote_code=True, max_tiles=6, dtype="float32")


@for_each(
    ("arguments", "said"),
    [
        ({}, "name the model folder"),
        ({"pretrained": "M", "trust_remot_code": 1}, "did you mean 'trust_remote_code'"),
        ({"pretrained": "M", "max_tiles": 0}, "max_tiles=0 is not valid"),
        ({"pretrained": "M", "dtype": "int8"}, "one of auto"),
    ],
)
def test_refusals(arguments, said):
    with pytest.raises(ModelError, match=said):
        InternVLOptions.from_arguments(arguments)

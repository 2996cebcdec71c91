"""The back end ``litellm``: what is its own; the real package against a chat-completions server."""

from __future__ import annotations

import pytest
from PIL import Image

from lmms_eval.errors import ModelError
from tests.models.openai.support import make_request
from tests.models.remote.dialects import LITELLM
from tests.servers.stub import StubServer

pytestmark = pytest.mark.filterwarnings("ignore")  # of the package's own code
LITELLM.need()


def test_pictures_and_system_prompt() -> None:
    with StubServer() as server:
        request = make_request("one", visuals=[Image.new("RGB", (4, 4))])
        assert LITELLM.ask_one(server, request, system_prompt="Be brief.").text == "one"
        messages = server.bodies()[0]["messages"]
    assert messages[0]["role"] == "system" and messages[1]["content"][0]["type"] == "image_url"


def test_a_name_without_service() -> None:
    with pytest.raises(ModelError, match="provider/model"):
        LITELLM.build(model="no-such-model-anywhere", base_url=None)

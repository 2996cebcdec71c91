"""``MODEL_REGISTRY`` as plugins of the family use it."""

from __future__ import annotations

from lmms_eval.api.registry import MODEL_REGISTRY
from tests.compat.plugins.kit import Plugins

PLUGIN = """\
from lmms_eval.api.model import lmms
from lmms_eval.api.registry import MODEL_REGISTRY, register_model


def own_class(mark):
    class Own(lmms):
        def generate_until(self, requests):
            return [request.args[0].partition("ANSWER=")[2] + mark for request in requests]

        loglikelihood = generate_until_multi_round = generate_until

    return Own


Other = register_model("own")(own_class("?"))
Other.__qualname__ = "Other"
if "own" in MODEL_REGISTRY:
    del MODEL_REGISTRY["own"]
Own = register_model("own")(own_class(""))
"""


def test_a_plugin_that_takes_its_name_out_and_registers_again_is_scored(plugins: Plugins) -> None:
    plugins.write(PLUGIN)
    try:
        done = plugins.run()
        assert (done.code, done.score) == (0, 1.0)
        assert type(MODEL_REGISTRY) is dict and MODEL_REGISTRY["own"].__module__ == "own_plugin.models.own"
    finally:
        MODEL_REGISTRY.pop("own", None)

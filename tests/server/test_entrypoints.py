from __future__ import annotations

import pytest

from lmms_eval.entrypoints import ServerArgs
from lmms_eval.errors import ConfigError
from tests.cases import for_each


def test_the_family_s_settings_are_the_server_s():
    settings = ServerArgs().settings()
    assert (settings.host, settings.port, settings.max_completed_jobs) == ("localhost", 8000, 100)
    assert settings.prefix == "lmms_eval_"


@for_each("wrong", [{"port": 0}, {"port": 65536}, {"max_completed_jobs": 0}, {"temp_dir_prefix": "a/b"}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(ConfigError):
        ServerArgs(**wrong)

"""Arguments of trackers: what each takes, and what is refused before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval.config import build_config, check_config
from lmms_eval.config.tracking import HUB, SWANLAB, TRACKIO, WANDB, Destination, destination_arguments
from lmms_eval.errors import ConfigError
from tests.cases import for_each


@for_each(
    ("destination", "given", "found"),
    [
        (WANDB, "name=007,tags=[a,b],force=True", {"name": "007", "tags": ["a", "b"], "force": True}),
        (WANDB, {"project": "p", "tags": ["a"], "resume": True}, {"project": "p", "tags": ["a"], "resume": True}),
        (WANDB, "resume=must", {"resume": "must"}),
        (SWANLAB, "exp_name=e,mode=local", {"name": "e", "mode": "local"}),
        (TRACKIO, "project=p,private=false", {"project": "p", "private": False}),
        (HUB, "public_repo=TRUE", {"public_repo": True}),
        (HUB, "", {}),
        (HUB, None, {}),
    ],
)  # fmt: skip
def test_values_have_their_types(destination: Destination, given: Any, found: dict[str, Any]) -> None:
    assert destination_arguments(destination, given) == found


@for_each(
    ("destination", "given", "said"),
    [
        (WANDB, "projct=p", "--wandb_args: unknown key 'projct'; did you mean project?"),
        (WANDB, "zzz=p", "it takes project, entity"),
        (WANDB, "mode=of", "choose one of online, offline"),
        (WANDB, "project", "write it as key=value,key=value"),
        (WANDB, "project=", "give a text"),
        (WANDB, {"project": {"a": 1}}, "give a text"),
        (SWANLAB, "exp_name=a,name=b", "name and its other spelling are both given"),
        (TRACKIO, "private=perhaps", "give true or false"),
    ],
)
def test_what_cannot_be_meant_is_refused(destination: Destination, given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        destination_arguments(destination, given)
    assert said in str(raised.value)


@for_each(("destination", "key"), [(WANDB, "api_key"), (SWANLAB, "API_KEY"), (HUB, "token")])
def test_keys_are_read_from_the_environment_alone(destination: Destination, key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        destination_arguments(destination, f"{key}=canary-1234")
    assert "read from the environment" in str(raised.value)
    assert "canary" not in str(raised.value)


@for_each("name", ["wandb", "swanlab", "trackio"])
def test_samples_need_their_tracker(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--{name}_log_samples needs --{name}_args"):
        check_config(build_config({"tasks": "t", f"{name}_log_samples": True}, {}))

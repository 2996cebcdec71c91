from __future__ import annotations

import threading

import pytest

from lmms_eval.errors import LmmsEvalError
from lmms_eval.sandbox.layers import probe_layers
from lmms_eval.sandbox.policy import Policy, SandboxRefused, current_policy, not_confined, using
from tests.cases import for_each
from tests.sandbox.kit import COMBINATIONS, only


@for_each("names", COMBINATIONS.values(), ids=COMBINATIONS)
def test_what_suffices(names: tuple[str, ...]) -> None:
    assert not_confined(only(names)) == ()
    assert Policy(probe=lambda: only(names)).layers() == only(names)


@for_each(
    ("names", "missing"),
    [
        ((), ("files", "network", "processes")),
        (("seccomp",), ("files",)),
        (("landlock",), ("network", "processes")),
        (("namespaces",), ("processes",)),
        (("namespaces", "landlock", "no_new_privs"), ("processes",)),
    ],
)
def test_refusals_name_what_is_missing_and_the_remedy(names: tuple[str, ...], missing: tuple[str, ...]) -> None:
    assert not_confined(only(names)) == missing
    with pytest.raises(SandboxRefused) as refusal:
        Policy(probe=lambda: only(names)).layers()
    text = str(refusal.value)
    assert " and ".join(missing) in text
    assert "Landlock" in text
    assert "lmms-eval doctor" in text
    assert "--allow_unsafe_code" in text
    assert isinstance(refusal.value, LmmsEvalError)
    assert Policy(True, lambda: only(names)).layers() == only(names)


def test_the_strict_policy_holds_unless_a_run_says_otherwise() -> None:
    assert not current_policy().allow_unsafe
    assert current_policy().probe() == probe_layers()
    with using(Policy(True)):
        assert current_policy().allow_unsafe
        elsewhere: list[bool] = []
        thread = threading.Thread(target=lambda: elsewhere.append(current_policy().allow_unsafe))
        thread.start()
        thread.join()
        assert elsewhere == [False]
        with using(Policy(False)):
            assert not current_policy().allow_unsafe
        assert current_policy().allow_unsafe
    assert not current_policy().allow_unsafe

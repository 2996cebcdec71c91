"""Models and plugins: imports, arguments, an answer to a text and to a picture."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping

import pytest
from msgspec import structs

from lmms_eval.checks import findings
from lmms_eval.checks.findings import (
    CheckReport,
    Finding,
    RefusedConnectionError,
    _audit,
    _extras,
    finding,
    is_this_machine,
    of_reason,
)
from lmms_eval.checks.workers import CheckOptions, model_job, run_checks
from lmms_eval.errors import DataError, MissingOptionalDependencyError
from tests.cases import for_each

PLUGIN = """
from lmms_eval.api.model import lmms

class Plug(lmms):
    is_simple = True

    def __init__(self, pretrained, answer="A cat.", batch_size=1):
        super().__init__()
        if pretrained == "missing":
            raise OSError("no weights in " + pretrained)
        self.answer = answer

    def generate_until(self, requests):
        answers = []
        for request in requests:
            pictures = self.pictures(request)
            if self.answer == "blind" and pictures:
                raise RuntimeError("no picture is taken")
            answers.append(self.answer)
        return answers

    def pictures(self, request):
        ctx, gen, visual, doc_id, task, split = request.args
        return visual(self.task_dict[task][split][doc_id])

    def loglikelihood(self, requests):
        return [(0.0, True)] * len(requests)

    def generate_until_multi_round(self, requests):
        raise NotImplementedError
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, CheckReport]:
    home = tmp_path_factory.mktemp("plugins")
    models = home / "checkplug" / "models"
    models.mkdir(parents=True)
    (home / "checkplug/__init__.py").touch()
    table = {"simple": "Plug", "needing": "Plug"}
    (models / "__init__.py").write_text(f"AVAILABLE_MODELS = {table!r}\n")
    (models / "simple.py").write_text(PLUGIN)
    (models / "needing.py").write_text("import package_of_nobody\n")
    jobs = {
        "sound": ("simple", "pretrained=x"),
        "chat": ("baseline", "strategy=constant"),
        "missing argument": ("simple", ""),
        "unknown argument": ("simple", "pretrained=x,anwser=B"),
        "no weights": ("simple", "pretrained=missing"),
        "blind": ("simple", "pretrained=x,answer=blind"),
        "no package": ("needing", "pretrained=x"),
        "no model": ("simpel", ""),
        "service": ("openai", "model=m,base_url=http://192.0.2.1/v1"),
    }
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(home))
        for number, (name, (model, arguments)) in enumerate(jobs.items()):
            made[name] = model_job(model, arguments, ["checkplug"])
            made[name] = structs.replace(made[name], name=str(number))  # one report for each set of arguments
        checks = run_checks(made.values(), CheckOptions(timeout_s=60, processes=1))
    return dict(zip(jobs, checks.checked, strict=True))


@pytest.mark.parametrize(
    ("name", "status", "step", "text"),
    [
        ("sound", "ok", "picture", ""),
        ("chat", "ok", "picture", ""),
        ("missing argument", "failed", "arguments", "needs --model_args pretrained"),
        ("unknown argument", "failed", "arguments", "did you mean answer"),
        ("no weights", "failed", "arguments", "no weights in missing"),
        ("blind", "failed", "picture", "no picture is taken"),
        ("no package", "failed", "import", "pip install package-of-nobody"),
        ("no model", "failed", "import", "did you mean simple"),
        ("service", "skipped", "text", "192.0.2.1"),
    ],
)
def test_finding(name: str, status: str, step: str, text: str, reports: Mapping[str, CheckReport]) -> None:
    each = reports[name]
    assert each.status == status, each
    assert each.findings[-1].step == step
    assert text in each.findings[-1].message


@for_each("host", ["localhost", "127.0.0.1", "127.3.2.1", "::1", "", b"localhost"])
def test_this_machine(host: str | bytes) -> None:
    assert is_this_machine(host)
    _audit("socket.getaddrinfo", (host, 80))


@for_each("host", ["192.0.2.1", "example.org", "localhost.example.org", "2001:db8::1", b"0x7f.1"])
def test_other_machines(host: str | bytes) -> None:
    assert not is_this_machine(host)
    with pytest.raises(RefusedConnectionError, match="opens no connection"):
        _audit("socket.getaddrinfo", (host, 80))
    with pytest.raises(RefusedConnectionError, match="opens no connection"):
        _audit("socket.connect", (None, (host, 80)))


def test_sockets_of_the_file_system_are_of_this_machine() -> None:
    assert is_this_machine("") and not is_this_machine("/tmp/socket")  # so that it is no host that is let through
    _audit("socket.connect", (None, "/tmp/socket"))
    _audit("open", ("/tmp/x", "r", 0))


def test_package_of_an_optional_part(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy>=1", "zhconv>=1.4; extra == 'asr'", "zhconv; extra == 'dev'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: lines)
    monkeypatch.setattr(findings, "_extras", _extras.__wrapped__)
    try:
        raise DataError("x") from ModuleNotFoundError("No module named 'zhconv'", name="zhconv")
    except DataError as error:
        made = finding("functions", error)
    assert made.kind == "package missing"
    assert "pip install 'lmms_eval[asr]'" in made.cause


def test_own_hints_are_kept() -> None:
    made = finding("gold", MissingOptionalDependencyError("needs x: pip install x"))
    assert made == Finding(
        "gold", "failed", "package missing", "needs x: pip install x", "needs x: pip install x"
    )  # fmt: skip


@for_each(
    ("reason", "status"),
    [
        ("video 'clip': not there; looked for /a/clip.mp4", "skipped"),
        ("process_results raised FileNotFoundError: [Errno 2] No such file or directory: 'x.png'", "skipped"),
        ("process_results raised KeyError: 'answer not found'", "failed"),
    ],
)
def test_reasons_of_failed_samples(reason: str, status: str) -> None:
    assert of_reason("gold", reason).status == status

"""A secret that a command is given stands in nothing that the command leaves or prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.workload import text_task
from tests.faults.command import Ended, lmms_eval
from tests.servers.stub import StubServer

CANARY = "cAnArY7secret42value"
PLACES = {
    "none": ("base_url={url}", ()),
    "query": ("base_url={url}?key=" + CANARY, ()),
    "user": ("base_url={user_url}", ()),
    "path": ("base_url={url}/" + CANARY, ()),
    "extra_body": ('base_url={url},extra_body={{"auth":{{"code":"' + CANARY + '"}}}}', ()),
    "api_key": ("base_url={url},api_key=" + CANARY, ()),
    "gen_kwargs": ("base_url={url}", ("--gen_kwargs", f"temperature=0,api_key={CANARY}")),
    "gen_kwargs, nested": ("base_url={url}", ("--gen_kwargs", f'extra_body={{"signature":"{CANARY}"}}')),
}


def evaluate(tmp_path: Path, server: StubServer, place: str, **environment: str) -> Ended:
    arguments, flags = PLACES[place]
    url = server.url.removesuffix("/v1") if place == "path" else server.url
    given = arguments.format(url=url, user_url=server.url.replace("://", f"://{CANARY}@"))
    text_task(tmp_path / "tasks", 20)
    return lmms_eval(
        "--model", "openai", "--model_args", f"model=stub,max_retries=0,num_concurrent=2,{given}", "--tasks",
        "bench_text", "--include_path", tmp_path / "tasks", "--output_path", tmp_path / "out", "--log_samples",
        "--use_cache", tmp_path / "cache", "--show_config", "--verbosity", "DEBUG", *flags, **environment,
    )  # fmt: skip


def leaks(tmp_path: Path, ended: Ended) -> list[str]:
    """Names of what holds the secret."""
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.endswith("_results.json") for path in files)
    found = [str(path.relative_to(tmp_path)) for path in files if CANARY.encode() in path.read_bytes()]
    printed = {"standard output": ended.out, "standard error": ended.err}
    return found + [name for name, text in printed.items() if CANARY in text]


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_nowhere_after_a_run(tmp_path: Path, place: str) -> None:
    with StubServer() as server:
        ended = evaluate(tmp_path, server, place)
    assert ended.code == 0, ended.shown
    assert leaks(tmp_path, ended) == []


@pytest.mark.parametrize("place", ["api_key", "query"])
def test_a_server_that_says_it_back_does_not_spread_it(tmp_path: Path, place: str) -> None:
    with StubServer(fault="echo_key") as server:
        ended = evaluate(tmp_path, server, place)
    assert ended.code == 3, ended.shown
    assert leaks(tmp_path, ended) == []


def test_secrets_of_the_environment(tmp_path: Path) -> None:
    with StubServer(fault="echo_key") as server:
        ended = evaluate(tmp_path, server, "none", OPENAI_API_KEY=CANARY)
    assert ended.code == 3, ended.shown
    assert leaks(tmp_path, ended) == []


def test_a_command_line_that_is_wrong_shows_no_secret(tmp_path: Path) -> None:
    ended = lmms_eval("--model", "openai", "--model_args", f"base_url=http://h/v1?sig={CANARY},modle=x", "--tasks", "t")
    assert ended.code == 2 and CANARY not in ended.out + ended.err

"""A secret that a command is given stands in nothing that the command leaves or prints."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from benchmarks.workload import text_task
from tests.faults.command import Ended, lmms_eval
from tests.servers.stub import StubServer

CANARIES = tuple(f"cAnArY{number}secret42value" for number in range(7))
QUERY, USER, PATH, BODY, KEY, OPTION, NESTED = CANARIES
IN_THE_ADDRESS = "base_url={scheme}://{user}@{host}/{path}?key={query}"
ELSEWHERE = 'base_url={scheme}://{host}/v1,api_key={key},extra_body={{"auth":{{"code":"{body}"}}}}'
OPTIONS = f'temperature=0,api_key={OPTION},extra_headers={{"signature":"{NESTED}"}}'


def evaluate(tmp_path: Path, server: StubServer, arguments: str, options: str = "", **environment: str) -> Ended:
    parts = urlsplit(server.url)
    given = arguments.format(
        scheme=parts.scheme, host=parts.netloc, user=USER, path=PATH, query=QUERY, key=KEY, body=BODY
    )
    text_task(tmp_path / "tasks", 20)
    return lmms_eval(
        "--model", "openai", "--model_args", f"model=stub,max_retries=0,num_concurrent=2,{given}", "--tasks",
        "bench_text", "--include_path", tmp_path / "tasks", "--output_path", tmp_path / "out", "--log_samples",
        "--use_cache", tmp_path / "cache", "--show_config", "--verbosity", "DEBUG",
        *(("--gen_kwargs", options) if options else ()), **environment,
    )  # fmt: skip


def leaks(tmp_path: Path, ended: Ended) -> set[tuple[str, str]]:
    """Secrets, and the names of what holds them."""
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.endswith("_results.json") for path in files)
    held = {str(path.relative_to(tmp_path)): path.read_bytes() for path in files}
    held |= {"standard output": ended.out.encode(), "standard error": ended.err.encode()}
    return {(canary, name) for canary in CANARIES for name, text in held.items() if canary.encode() in text}


@pytest.mark.parametrize(
    ("arguments", "options"), [(IN_THE_ADDRESS, ""), (ELSEWHERE, OPTIONS)], ids=["in the address", "elsewhere"]
)
def test_a_secret_is_nowhere_after_a_run(tmp_path: Path, arguments: str, options: str) -> None:
    with StubServer() as server:
        ended = evaluate(tmp_path, server, arguments, options)
    assert ended.code == 0, ended.shown
    assert leaks(tmp_path, ended) == set()


def test_a_server_that_says_it_back_does_not_spread_it(tmp_path: Path) -> None:
    with StubServer(fault="echo_key") as server:
        ended = evaluate(tmp_path, server, "base_url={scheme}://{host}/v1", OPENAI_API_KEY=KEY)
    assert ended.code == 3, ended.shown
    assert "[REDACTED]" in ended.out
    assert leaks(tmp_path, ended) == set()


def test_a_command_line_that_is_wrong_shows_no_secret(tmp_path: Path) -> None:
    ended = lmms_eval("--model", "openai", "--model_args", f"base_url=http://h/v1?sig={KEY},modle=x", "--tasks", "t")
    assert ended.code == 2 and KEY not in ended.out + ended.err

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from loguru import logger

from lmms_eval.utils.logging import configure_logging, log_lines, process_number
from tests.cases import for_each

SECRET = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    yield
    logger.remove()


def test_messages_go_to_standard_error_from_the_level_on(capsys) -> None:
    configure_logging("WARNING")
    logger.info("quiet")
    logger.warning("loud")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "loud" in captured.err
    assert "quiet" not in captured.err


def test_secrets_are_masked_also_in_tracebacks(capsys) -> None:
    configure_logging("INFO")
    logger.info(f"model_args api_key={SECRET},model=m")
    try:
        raise ValueError(f"refused token={SECRET}")
    except ValueError:
        logger.exception("call failed")
    error = capsys.readouterr().err
    assert SECRET not in error
    assert "model=m" in error
    assert "ValueError: refused token=[REDACTED]" in error


def test_records_of_the_standard_loggers_arrive(capsys) -> None:
    configure_logging("INFO")
    logging.getLogger("lmms_eval.models.registry").info("model %r now comes from %s", "m", "{here}")
    logging.getLogger("lmms_eval.models.registry").debug("detail")
    error = capsys.readouterr().err
    assert "model 'm' now comes from {here}" in error
    assert "detail" not in error


def test_setting_up_twice_does_not_double_messages(capsys) -> None:
    configure_logging("INFO")
    configure_logging("DEBUG")
    logging.getLogger("lmms_eval").debug("once")
    logger.debug("plain")
    error = capsys.readouterr().err
    assert error.count("once") == 1
    assert error.count("plain") == 1


def test_lines_are_not_format_strings(capsys) -> None:
    configure_logging("INFO")
    log_lines(["Config env: A={x}"])
    assert "Config env: A={x}" in capsys.readouterr().err


@for_each(("verbosity", "shown"), [("INFO", "we"), ("ERROR", "e"), ("DEBUG", "diwe")])
def test_a_further_process_names_itself_and_logs_warnings_unless_asked_for_more(capsys, verbosity, shown) -> None:
    configure_logging(verbosity, process=3)
    for level in ("debug", "info", "warning", "error"):
        getattr(logger, level)(level)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[-1][0] for line in lines] == list(shown)
    assert all(" process 3: " in line for line in lines)


def test_the_first_process_logs_as_one_that_is_alone(capsys) -> None:
    configure_logging("INFO", process=0)
    logger.info("here")
    assert capsys.readouterr().err.endswith(" here\n")


@for_each(
    ("environ", "number"),
    [({}, 0), ({"RANK": "2", "WORLD_SIZE": "4"}, 2), ({"RANK": "2", "WORLD_SIZE": "1"}, 0), ({"RANK": "x"}, 0)],
)
def test_number_of_this_process(environ, number) -> None:
    assert process_number(environ) == number

"""Lines of a batch's results as replies or failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from lmms_eval.api.request import ErrorKind
from lmms_eval.models.openai.errors import AttemptError, shorten, status_error
from lmms_eval.models.openai.reply import Reply, decode_body

ENDED = ("completed", "failed", "expired", "cancelled")
"""States of a batch from which nothing more comes."""
_UNANSWERED: Mapping[str, tuple[ErrorKind, bool]] = {
    "batch_expired": ("timeout", True),
    "expired": ("timeout", True),
    "batch_cancelled": ("server_error", False),
    "cancelled": ("server_error", False),
    "completed": ("malformed", True),
    "token_limit_exceeded": ("rate_limit", True),
    "rate_limit_exceeded": ("rate_limit", True),
    "server_error": ("server_error", True),
}
"""Kind of failure, and if it is asked again, by the code of a line's error or by the state of a batch that ended
without a line. A batch that a person has cancelled is not begun anew behind their back."""


@dataclass(frozen=True, slots=True)
class Result:
    """One request's line."""

    request_id: str
    outcome: Reply | AttemptError


@dataclass(frozen=True, slots=True)
class ResultReader:
    """Reads lines of output and error files of one service.

    ``parse`` reads an answer of status 200; ``shown`` is the address for messages, ``key_name`` the variable of the
    key.
    """

    parse: Callable[[bytes, str], Reply]
    shown: str
    key_name: str

    def read(self, line: bytes) -> Result | None:
        """Read one line; ``None`` where it names no request."""
        try:
            record = decode_body(line)
        except orjson.JSONDecodeError:
            return None
        if not isinstance(record, dict) or not isinstance(record.get("custom_id"), str):
            return None
        try:
            return Result(record["custom_id"], self._reply(record))
        except AttemptError as error:
            return Result(record["custom_id"], error)

    def _reply(self, record: Mapping[str, Any]) -> Reply:
        error, response = record.get("error"), record.get("response")
        if not isinstance(response, Mapping):
            told = error if isinstance(error, Mapping) else {}
            reason = str(told.get("message") or error or "no response")
            raise unanswered(str(told.get("code") or "completed"), reason, self.shown)
        raw = orjson.dumps(response.get("body"))
        status = response.get("status_code")
        if status == 200:
            return self.parse(raw, self.shown)
        raise status_error(status if isinstance(status, int) else 500, raw, {}, self.shown, self.key_name)


def unanswered(code: str, reason: str, shown: str) -> AttemptError:
    """Make the failure of a request that a batch did not answer; ``code`` as in ``_UNANSWERED``."""
    kind, retry = _UNANSWERED.get(code, ("bad_request", False))
    return AttemptError(kind, f"a batch of {shown} gave no answer ({code}): {shorten(reason)}", retry=retry)


def batch_failure(batch: Mapping[str, Any], shown: str) -> AttemptError:
    """Make the failure of all requests for which an ended batch has no line."""
    errors = batch.get("errors")
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    first = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], Mapping) else {}
    status = str(batch.get("status"))
    reason = str(first.get("message") or f"batch {batch.get('id')} is {status} and has no line of this request")
    code = str(first.get("code") or status) if status == "failed" else status
    return unanswered(code, reason, shown)

"""The response cache that programs of the family put in front of a model object.

A run has a cache of its own (``use_cache``), whose keys include what these leave out: media, messages, seeds.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval.api.instance import GenerationResult, Instance
from lmms_eval.compat.helpers import hash_string

SCHEMA = 3
KEYS = (
    "temperature", "top_p", "top_k", "max_new_tokens", "max_gen_toks", "do_sample", "num_beams", "until",
    "repetition_penalty", "n", "best_of", "num_return_sequences",
)  # fmt: skip
"""Generation options that are part of a key."""
_SEVERAL = ("n", "best_of", "num_return_sequences")
_PAIR = 2
_TABLES = """
CREATE TABLE IF NOT EXISTS responses(cache_key TEXT PRIMARY KEY, request_type TEXT, task_name TEXT, doc_id INTEGER,
    idx INTEGER DEFAULT 0, gen_kwargs TEXT, response TEXT, created_at REAL);
CREATE INDEX IF NOT EXISTS responses_of_documents ON responses(task_name, doc_id);
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT);
"""


def canonicalize_gen_kwargs(gen_kwargs: Mapping[str, Any] | None) -> str:
    """Write the options that matter as JSON; equal options give the same text."""
    given = {name: value for name, value in (gen_kwargs or {}).items() if name in KEYS}
    whole = {name: int(value) for name, value in given.items() if isinstance(value, float) and value.is_integer()}
    return _compact(given | whole)


def is_deterministic(request_type: str, gen_kwargs: Mapping[str, Any] | None) -> bool:
    """Return whether the same request has the same answer: likelihoods, and generation without sampling."""
    if request_type in ("loglikelihood", "loglikelihood_rolling"):
        return True
    options = gen_kwargs or {}
    temperature = options.get("temperature")
    if isinstance(temperature, int | float) and temperature > 0:
        return False
    several = any(isinstance(options.get(name), int | float) and options[name] > 1 for name in _SEVERAL)
    return not options.get("do_sample") and not several


def extract_gen_kwargs(instance: Instance) -> dict[str, Any]:
    """Return a request's generation options: the first mapping among its arguments."""
    return next((dict(value) for value in instance.args if isinstance(value, Mapping)), {})


def compute_cache_key(  # noqa: PLR0913 - the family's
    request_type: str,
    task_name: str,
    doc_id: int | str,
    gen_kwargs: Mapping[str, Any],
    idx: int = 0,
    task_fingerprint: str = "",
    content_hash: str = "",
    model_fingerprint_hash: str = "",
    eval_version: str = "",
) -> str:
    """Compute the SHA-256 that an answer is stored under."""
    given: dict[str, Any] = {
        "v": SCHEMA, "rt": request_type, "tn": task_name, "did": doc_id, "idx": idx,
        "gk": canonicalize_gen_kwargs(gen_kwargs),
    }  # fmt: skip
    optional = {"ch": content_hash, "tf": task_fingerprint, "mfh": model_fingerprint_hash, "ev": eval_version}
    return hash_string(_compact(given | {name: value for name, value in optional.items() if value}))


class ResponseCache:
    """Stores answers in an SQLite file, and each answer of a model also as a JSON line of the log ``audit_path``.

    Part of every key are ``model_fingerprint``, which names the model and its arguments, the state of the task from
    ``task_fingerprints``, and ``eval_version``. The file ``shared_db_path`` is only read.
    """

    def __init__(
        self,
        db_path: str,
        audit_path: str,
        model_fingerprint: str = "",
        task_fingerprints: Mapping[str, str] | None = None,
        shared_db_path: str | None = None,
        eval_version: str = "",
    ) -> None:
        self.db_path, self.audit_path, self.shared_db_path = Path(db_path), Path(audit_path), shared_db_path
        self.model_fingerprint_hash = hash_string(model_fingerprint)[:16] if model_fingerprint else ""
        self.task_fingerprints, self.eval_version = dict(task_fingerprints or {}), eval_version
        self._counts = {"hits": 0, "hits_shared": 0, "misses": 0, "skipped_non_deterministic": 0}
        self.db_path.parent.mkdir(parents=True, exist_ok=True)
        self.audit_path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(self.db_path)
        self._file.executescript(_TABLES)
        facts = {"model_fingerprint": model_fingerprint, "schema_version": str(SCHEMA), "eval_version": eval_version}
        self._file.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", facts.items())
        self._file.commit()
        shared = None if shared_db_path is None else Path(shared_db_path)
        self._shared = sqlite3.connect(f"{shared.resolve().as_uri()}?mode=ro", uri=True) if shared else None

    def execute(self, lm: Any, reqtype: str, requests: Sequence[Instance]) -> list[Any]:
        """Answer requests of one kind: stored answers come from the file, the others from one call of the model.

        Raises ``ValueError`` if the model returned a wrong number of answers.
        """
        options = [extract_gen_kwargs(request) for request in requests]  # plugins may change them in place
        steady = [is_deterministic(reqtype, one) for one in options]
        keys = [self._key(reqtype, request, one) for request, one in zip(requests, options, strict=True)]
        answers = [self._found(key) if kept else None for key, kept in zip(keys, steady, strict=True)]
        missing = [place for place, answer in enumerate(answers) if answer is None]
        self._counts["skipped_non_deterministic"] += steady.count(False)
        self._counts["misses"] += sum(steady[place] for place in missing)
        made = list(getattr(lm, reqtype)([requests[place] for place in missing])) if missing else []
        if len(made) != len(missing):
            raise ValueError(f"{type(lm).__name__}.{reqtype} gave {len(made)} answers to {len(missing)} requests")
        for place, answer in zip(missing, made, strict=True):
            answers[place] = answer
            if steady[place] and _is_good(_kept(answer), reqtype):
                self._store(keys[place], requests[place], reqtype, options[place], _kept(answer))
        return answers

    def get_stats(self) -> dict[str, Any]:
        """Count the answers that were found, those that were requested, and those that sampling makes uncacheable."""
        looked = self._counts["hits"] + self._counts["hits_shared"] + self._counts["misses"]
        found = self._counts["hits"] + self._counts["hits_shared"]
        (total,) = self._file.execute("SELECT COUNT(*) FROM responses").fetchone()
        return {**self._counts, "hit_rate": found / looked if looked else 0.0, "total_cached_entries": total}

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        if self._shared is not None:
            self._shared.close()

    def _key(self, kind: str, request: Instance, options: Mapping[str, Any]) -> str:
        leading = []
        for value in request.args:
            if not isinstance(value, str):
                break
            leading.append(value)
        task = request.task_name or ""
        return compute_cache_key(
            kind, task, request.doc_id if request.doc_id is not None else -1, options, request.idx,
            self.task_fingerprints.get(task, ""), hash_string("\0".join(leading))[:16], self.model_fingerprint_hash,
            self.eval_version,
        )  # fmt: skip

    def _found(self, key: str) -> Any:
        for name, file in (("hits", self._file), ("hits_shared", self._shared)):
            row = file and file.execute("SELECT response FROM responses WHERE cache_key = ?", (key,)).fetchone()
            if row:
                self._counts[name] += 1
                value = json.loads(row[0])
                is_likelihood = isinstance(value, list) and len(value) == _PAIR and isinstance(value[1], bool)
                return tuple(value) if is_likelihood else value
        return None

    def _store(self, key: str, request: Instance, kind: str, options: Mapping[str, Any], answer: Any) -> None:
        row = {
            "cache_key": key, "request_type": kind, "task_name": request.task_name, "doc_id": request.doc_id,
            "idx": request.idx, "gen_kwargs": canonicalize_gen_kwargs(options), "response": json.dumps(answer),
            "created_at": time.time(),
        }  # fmt: skip
        with self.audit_path.open("a", encoding="utf-8") as log:
            log.write(json.dumps({**row, "fingerprint_schema_version": SCHEMA, "deterministic": True}) + "\n")
        self._file.execute(f"INSERT OR REPLACE INTO responses VALUES ({','.join('?' * len(row))})", tuple(row.values()))
        self._file.commit()


def _kept(answer: Any) -> Any:
    """Return the part of an answer that is stored: text, pair, or rounds."""
    if isinstance(answer, GenerationResult):
        return answer.text
    if isinstance(answer, tuple) and len(answer) == _PAIR and isinstance(answer[0], str):
        return answer[0]
    return list(answer) if isinstance(answer, tuple) else answer


def _is_good(answer: Any, kind: str) -> bool:
    if kind == "loglikelihood_rolling":
        return isinstance(answer, float)
    if kind == "loglikelihood":
        return isinstance(answer, list) and len(answer) == _PAIR
    return bool(answer.strip()) if isinstance(answer, str) else isinstance(answer, list) and bool(answer)


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))

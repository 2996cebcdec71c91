"""The hub: pushes the files of a successful run to data sets at its end (``--hf_hub_log_args``)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from lmms_eval.trackers.contract import (
    Beginning,
    FinalResults,
    LiveNumbers,
    RunEnding,
    TaskSamples,
    TrackerError,
    TrackerPlace,
)

CARD = "README.md"
LATEST = "latest"
_FENCE = "---\n"
_BEGIN, _END = "<!-- begin lmms_eval -->", "<!-- end lmms_eval -->"
"""Each push replaces the text between these marks. The rest of the card is written by people and stays."""


SamplesFile = tuple[str, str, str]
"""A samples file in the repository: the configuration and the split for ``load_dataset``, and the path."""


def card_with(card: str, samples: Sequence[SamplesFile], title: str, arguments: Mapping[str, Any]) -> str:
    """Return the card with the samples added. Its own text and other metadata stay.

    Args:
        card: the present card, which is empty if there is no card yet.
        samples: the files that are pushed.
        title: the title of the data set.
        arguments: those of ``--hf_hub_log_args``, with the leaderboard and the contact.

    Raises:
        ValueError: the metadata of the present card cannot be read.
    """
    metadata, text = _parts(card)
    if not metadata:
        metadata = {"pretty_name": title, "viewer": False}
    if samples:
        stated = metadata.get("configs")
        entries = [entry for entry in (stated if isinstance(stated, list) else []) if isinstance(entry, dict)]
        configs: dict[str, dict[str, Any]] = {str(entry.get("config_name")): entry for entry in entries}
        for config, stamp, path in samples:
            entry = configs.setdefault(config, {"config_name": config})
            files = entry.get("data_files")
            present = [file for file in (files if isinstance(files, list) else []) if isinstance(file, Mapping)]
            named = [file for file in present if "path" in file and file.get("split") not in (None, LATEST)]
            splits = {str(file["split"]): file["path"] for file in named} | {stamp: path}
            newest = max(splits)
            entry["data_files"] = [{"split": split, "path": splits[split]} for split in sorted(splits)]
            entry["data_files"].append({"split": LATEST, "path": splits[newest]})
        metadata["configs"] = list(configs.values())
        metadata.pop("viewer", None)  # it was disabled as long as there were no samples to show
    head = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    return f"{_FENCE}{head}{_FENCE}{_text(text, title, arguments)}"


def _parts(card: str) -> tuple[dict[str, Any], str]:
    """Split a card into its metadata and its text."""
    card = card.removeprefix("\ufeff").replace("\r\n", "\n")
    if not card.startswith(_FENCE):
        return {}, card
    head, fence, text = card.removeprefix(_FENCE).partition(f"\n{_FENCE}")
    try:
        found = yaml.safe_load(head) if fence else None
    except yaml.YAMLError as error:
        raise ValueError(f"the metadata of its {CARD} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"the metadata of its {CARD} are not a mapping: correct it, or push into another repository")
    return found, text


def _text(text: str, title: str, arguments: Mapping[str, Any]) -> str:
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    stated = {
        heading: " ".join(str(arguments.get(name) or "").split())
        for heading, name in (("Leaderboard", "leaderboard_url"), ("Contact", "point_of_contact"))
    }
    lines = [
        f"# {title}",
        "Evaluations with lmms_eval, a folder for each model: `DATE_results.json` holds the results of a run, "
        "`DATE_samples_TASK.jsonl` its samples of a task, a line for each.",
        "The samples of a task are a configuration `MODEL__TASK`, with a split for each run; "
        f"`{LATEST}` is the newest one.",
        *(f"{heading}: {value}" for heading, value in stated.items() if value),
    ]
    block = f"{_BEGIN}\n" + "\n\n".join(lines) + f"\n{_END}"
    if begin and end:
        return f"{before}{block}{after}"
    return f"{block}\n" if not text.strip() else f"{text.rstrip()}\n\n{block}\n"


DATA_SET = "dataset"
DEFAULT_NAME = "lmms-eval-results"
PRIVATE = "-private"
ATTEMPTS = 5
"""Attempts of a push, which fails if others push into the repository at the same time."""
_REFUSED, _CHANGED_MEANWHILE = (401, 403), (409, 412)
_MOST_ERROR = 240


def repositories(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the data sets for results and for samples, without their organisation; empty if nothing is pushed there.

    ``hub_repo_name`` is the older name of both.
    """
    older = arguments.get("hub_repo_name")
    samples = arguments.get("details_repo_name") or older or DEFAULT_NAME
    results = arguments.get("results_repo_name") or older or samples
    if not arguments.get("public_repo"):
        results, samples = (f"{name.removesuffix(PRIVATE)}{PRIVATE}" for name in (results, samples))
    return (
        results if arguments.get("push_results_to_hub") else "",
        samples if arguments.get("push_samples_to_hub") else "",
    )


class Hub:
    """Checks the token when the run begins, and pushes the run's files when it has ended."""

    def __init__(self) -> None:
        self._api: Any = None
        self._organisation, self._model = "", ""
        self._arguments: Mapping[str, Any] = {}
        self._results: Path | None = None
        self._samples: dict[str, Path] = {}

    def start(self, beginning: Beginning) -> TrackerPlace:
        from huggingface_hub import HfApi, get_token

        if get_token() is None:
            raise TrackerError("there is no token: set HF_TOKEN, or log in with `hf auth login`")
        self._api, self._arguments, self._model = HfApi(), beginning.arguments, beginning.model
        self._organisation = str(beginning.arguments.get("hub_results_org") or "")
        try:
            self._check_token()
        except TrackerError:
            raise
        except Exception as error:  # a hub that does not answer now may do so at the end of the run
            if _status(error) in _REFUSED:
                raise TrackerError(f"the token is refused: {first_line(error)}") from error
        return TrackerPlace()

    def step(self, step: LiveNumbers) -> None:
        """Ignore live numbers."""

    def results(self, results: FinalResults) -> None:
        self._results = Path(results.file)

    def samples(self, samples: TaskSamples) -> None:
        if samples.file:
            self._samples[samples.task] = Path(samples.file)

    def finish(self, ending: RunEnding) -> TrackerPlace:
        if self._api is None:
            return TrackerPlace()
        if not ending.has_succeeded or self._results is None:
            return TrackerPlace(hint=f"nothing was pushed, since the run is {ending.state}")
        try:
            if not self._organisation:
                self._check_token()
        except Exception as error:  # network and hub errors have no common class
            raise TrackerError(f"nothing was pushed, since the hub does not answer: {first_line(error)}") from error
        pushed: list[str] = []
        for repository, files in self._pushes():
            try:
                pushed.append(self._push(repository, files))
            except Exception as error:  # as above
                done = f"; pushed already: {', '.join(pushed)}" if pushed else ""
                path, file = next(iter(files.items()))
                more = f", and so for {len(files) - 1} more" if len(files) > 1 else ""
                hint = f"by hand: hf upload {repository} {file} {path} --repo-type {DATA_SET}{more}"
                raise TrackerError(f"{first_line(error)}{done}; {hint}") from error
        return TrackerPlace(url=", ".join(pushed))

    def _check_token(self) -> None:
        """Look up the token's user, whose name is the default of the organisation.

        Raises:
            TrackerError: the token's user is not in the organisation.
        """
        found = self._api.whoami()
        names = [str(found["name"]), *(str(one["name"]) for one in found.get("orgs", []))]
        if self._organisation and self._organisation not in names:
            raise TrackerError(f"the token's user {names[0]} is not in the organisation {self._organisation}")
        self._organisation = self._organisation or names[0]

    def _pushes(self) -> Iterator[tuple[str, dict[str, Path]]]:
        """Return the repositories, each with its files by their paths in it. Both may be the same repository."""
        results, samples = repositories(self._arguments)
        files: dict[str, dict[str, Path]] = {}
        assert self._results is not None
        if samples:
            files[samples] = {self._path_there(path): path for path in self._samples.values()}
        if results:
            files.setdefault(results, {})[self._path_there(self._results)] = self._results
        return ((f"{self._organisation}/{name}", found) for name, found in files.items() if found)

    def _path_there(self, path: Path) -> str:
        return f"{self._model}/{path.name}" if self._model else path.name

    def _push(self, repository: str, files: Mapping[str, Path]) -> str:
        """Push files into a repository as one commit, and return its address."""
        is_private = not self._arguments.get("public_repo")
        found = self._api.create_repo(repository, repo_type=DATA_SET, private=is_private, exist_ok=True)
        if self._arguments.get("gated"):
            self._api.update_repo_settings(repository, repo_type=DATA_SET, gated="auto")
        for attempt in range(ATTEMPTS):
            try:
                self._commit(repository, files)
                break
            except Exception as error:  # as above; re-raised unless the repository changed meanwhile
                if attempt == ATTEMPTS - 1 or _status(error) not in _CHANGED_MEANWHILE:
                    raise
        return str(found)

    def _commit(self, repository: str, files: Mapping[str, Path]) -> None:
        """Commit files, with the card that names them, on top of the repository's present head."""
        from huggingface_hub import CommitOperationAdd
        from huggingface_hub.errors import RemoteEntryNotFoundError

        head = self._api.repo_info(repository, repo_type=DATA_SET).sha
        present = ""
        with tempfile.TemporaryDirectory() as folder, suppress(RemoteEntryNotFoundError):  # no card yet
            path = self._api.hf_hub_download(repository, CARD, repo_type=DATA_SET, revision=head, cache_dir=folder)
            present = Path(path).read_text("utf-8", "replace")
        there = {path: task for task, file in self._samples.items() if (path := self._path_there(file)) in files}
        prefix = f"{self._model}__" if self._model else ""
        samples = [
            (f"{prefix}{task}", files[path].name.partition("_samples_")[0], path) for path, task in there.items()
        ]
        card = card_with(present, samples, repository.rpartition("/")[2], self._arguments)
        operations = [CommitOperationAdd(path, str(file)) for path, file in files.items()]
        operations.append(CommitOperationAdd(CARD, card.encode("utf-8")))
        message = f"Results of {self._model or 'a model'}"
        self._api.create_commit(
            repository, operations, commit_message=message, repo_type=DATA_SET, parent_commit=head
        )  # fmt: skip


def _status(error: Exception) -> int | None:
    return getattr(getattr(error, "response", None), "status_code", None)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, shortened; its class if it has no message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:_MOST_ERROR]

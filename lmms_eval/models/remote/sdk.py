"""What the back ends over vendors' packages share: prompt, options in vain, payload."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_eval.api.request import Request
from lmms_eval.models.openai.body import read_system_prompt
from lmms_eval.models.remote.arguments import RemoteArguments
from lmms_eval.models.remote.failures import Failures
from lmms_eval.models.remote.media import Conversation, Frames, payload_size, read_conversation
from lmms_eval.models.remote.model import RemoteModel


class SdkModel(RemoteModel):
    """A ``RemoteModel`` whose payload is a dictionary: the keyword arguments of one call of the package."""

    def __init__(self, arguments: RemoteArguments, failures: Failures) -> None:
        super().__init__(arguments, failures.shown)
        self.failures = failures
        self.system_prompt = read_system_prompt(arguments.system_prompt)
        self._lock = threading.Lock()
        self._ignored: set[str] = set()

    def build(self, request: Request) -> dict[str, Any]:
        """The keyword arguments of the call for a request."""
        raise NotImplementedError

    def prepare(self, request: Request) -> Request:
        """Make the call's arguments.

        Raises:
            MediaError: a picture, video or sound cannot be read, or the service takes none.
        """
        payload = self.build(request)
        return request.with_payload(payload, payload_size(payload))

    def conversation(self, request: Request, whole_videos: bool = False) -> Conversation:
        """The request's turns with the prompt of the arguments."""
        frames = Frames(self._settings.max_frames_num, self._settings.video_fps, whole_videos)
        return read_conversation(request.build_messages(), frames, self.system_prompt)

    def note_ignored(self, names: Iterable[str]) -> None:
        """Remember generation options without a place."""
        with self._lock:
            self._ignored.update(names)

    def ignored_options(self) -> list[str]:
        """Generation options of tasks that had no place in the protocol, so far."""
        with self._lock:
            return sorted(self._ignored)

    def identity(self) -> Mapping[str, Any]:
        """Server, model, prompt and all arguments that change a request."""
        return {**super().identity(), "system_prompt": self.system_prompt}


def read_address(value: str | None, default: str) -> tuple[str, str]:
    """A base URL, and the same without user, password and query for people and records."""
    from urllib.parse import urlsplit, urlunsplit

    from lmms_eval.errors import ModelError

    address = (value or default).strip().rstrip("/")
    try:
        parts = urlsplit(address)
        place = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
    except ValueError as error:
        raise ModelError(f"base_url is no URL ({error})") from error
    if parts.scheme not in ("http", "https") or not place:
        raise ModelError("base_url must begin with http:// or https:// and name a host")
    return address, urlunsplit((parts.scheme, place, parts.path, "", ""))

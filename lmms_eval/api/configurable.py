"""Base class of the family's task classes; the family imports it from ``lmms_eval.api.task``."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from lmms_eval.errors import TaskError


class ConfigurableTask:
    """Opens a task's data in a way of its own: ``class: !function utils.X`` names a subclass in the task's YAML.

    The task is what the other keys of the YAML say. A subclass that overrides ``download`` gives its documents:
    ``download`` is called once with ``dataset_kwargs``, before the first document is read, and sets ``dataset``, a
    mapping from split to ``datasets.Dataset``. ``process_docs`` is then its own business, and nothing else of the
    object is called.
    """

    dataset: Any = None
    dataset_no_image: Any = None
    """Set by subclasses and read by nobody here: documents are read without their pictures where those are not asked
    for."""

    def __init__(self, *args: Any, config: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ARG002 - the family's
        """Keep the task's configuration: ``self.config.test_split`` and so on, ``None`` for keys without a value."""
        self.config = SimpleNamespace(**{key: value for key, value in config.items() if key != "class"})

    def download(self, dataset_kwargs: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002 - for subclasses
        """Set ``dataset`` and ``dataset_no_image``; overridden by subclasses.

        Raises:
            TaskError: always; data that need no code are opened without this method.
        """
        raise TaskError(
            f"{type(self).__name__}.download: the data are not opened by the base class in this version; set "
            "self.dataset, or leave download out where the keys of the YAML say where the data are"
        )

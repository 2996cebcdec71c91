"""Tasks whose documents are opened by a ``lmms_eval.api.task.ConfigurableTask``, as classes of the family are."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from lmms_eval.api.task import ConfigurableTask, Task, TaskOptions
from lmms_eval.errors import LmmsEvalError, TaskError
from lmms_eval.tasks.data import DataSet
from lmms_eval.tasks.data.local_copies import LocalCopies
from lmms_eval.tasks.data.splits import of_datasets
from lmms_eval.tasks.yaml.config import TaskConfig
from lmms_eval.tasks.yaml.fingerprints import absolute_paths, hash_of_functions, hash_of_text
from lmms_eval.tasks.yaml.functions import named
from lmms_eval.tasks.yaml.task import TaskSource, YamlTask, media_policy


def configured_task(source: TaskSource, options: TaskOptions, cls: type[ConfigurableTask]) -> Task:
    """Build the task of a YAML file that names a ``ConfigurableTask``.

    Raises ``TaskError`` if the configuration is wrong, or the class cannot be built.
    """
    plain = replace(source, raw={key: value for key, value in source.raw.items() if key != "class"})
    if cls.download is ConfigurableTask.download:
        return YamlTask(plain, options)
    return ConfiguredTask(plain, options, cls)


class ConfiguredTask(YamlTask):
    """A YAML task whose documents come from ``cls.download``."""

    def __init__(self, source: TaskSource, options: TaskOptions, cls: type[ConfigurableTask]) -> None:
        super().__init__(source, options)
        self._cls = cls
        # Every key with its value, with functions imported and data paths resolved.
        given = {name: getattr(self.config, name) for name in TaskConfig.model_fields if name != "class_"}
        kwargs = absolute_paths(self.config.dataset_kwargs)
        given |= {"dataset_path": str(self.config.dataset_path), "dataset_kwargs": kwargs, "class": cls}
        try:
            self._opener = cls(config=given)
        except LmmsEvalError:
            raise
        except Exception as error:  # the constructor is third-party code and may raise anything
            raise TaskError(
                f"{self.where}: key 'class': {cls.__name__} cannot be built: {type(error).__name__}: {error}"
            ) from error

    @property
    def data(self) -> DataSet:
        """The splits that the class returned, unchanged: the class applies ``process_docs`` itself if it wants to."""
        if self._data is None:
            copies = LocalCopies(self.options.data_root, self.where, str(self.config.dataset_path))
            download = copies.reached(named(self._opener.download, f"{self._cls.__name__}.download"))
            download(self._opener.config.dataset_kwargs)
            made = self._opener.dataset
            if not isinstance(made, Mapping):
                raise TaskError(
                    f"{self.where}: {self._cls.__name__}.download must set self.dataset to a datasets.DatasetDict, "
                    f"not a {type(made).__name__}"
                )
            policy = media_policy(self.config, self.where, self.options)
            self._data = of_datasets(made, f"{self.where}: {self._cls.__name__}.dataset", policy)
            self.prompts.media = policy
        return self._data

    def fingerprint(self) -> Mapping[str, str]:
        """The fingerprint of a YAML task, with the class's module among the functions."""
        found = super().fingerprint()
        return {**found, "functions": hash_of_text(found["functions"] + hash_of_functions([self._cls]))}

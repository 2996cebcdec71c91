"""The options of General-Bench's tasks: ``lmms_eval_specific_kwargs``, or ``--task_kwargs`` on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from lmms_eval.tasks._task_utils.task_options import FLAG, BenchmarkOptions, Rule, at_least, one_of, wrong_option
from lmms_eval.tasks.general_bench.data.annotations import ANNOTATION
from lmms_eval.tasks.general_bench.measures.contract import Context

PREDICTIONS = "prediction.json"


class Settings(BenchmarkOptions, frozen=True, kw_only=True):
    """The options of a task."""

    benchmark: ClassVar[str] = "General-Bench"
    rules: ClassVar[Mapping[str, Rule]] = {
        "subset": one_of("", "open", "closed"),
        "predictions": one_of("output", "beside"),
        "prediction_form": one_of("list", "object"),
        "media_answers": one_of("files", "ask"),
        "extraction": one_of("official", "fixed"),
        "points": one_of("render", "refuse"),
        "fad_network": one_of("vggish", "clap"),
        "wer_words": one_of("spoken", "written"),
        "tracking": one_of("auc", "j_and_f"),
        "s_measure": one_of("published", "authors"),
        "max_frames": at_least(1),
        "answer_limit": at_least(1),
        "download": FLAG,
    }

    subset: Literal["", "open", "closed"] = ""
    """The set to use. If empty, the open one if both hold the task."""
    only: str = ""
    """Restricts the run to the task of this folder: its name, or the end of its path."""
    predictions: Literal["output", "beside"] = "output"
    """Place of ``prediction.json``: below ``--output_path``, or next to the task's annotation."""
    prediction_name: str = PREDICTIONS
    """Name of those files. Several models that answer in the same folders need different names."""
    prediction_form: Literal["list", "object"] = "list"
    """A list of records, or the object of submissions of the closed set."""
    media_answers: Literal["files", "ask"] = "files"
    """Treatment of tasks with answers that are media or arrays: scored from ``prediction.json`` next to the annotation,
    or asked of the model (one that draws).
    """
    extraction: Literal["official", "fixed"] = "official"
    """Rule for reading a choice from a language reply: the authors' (``A`` without a match), or the mended one (no
    answer without a match).
    """
    answer_limit: int | None = None
    """Most new tokens of an answer, if less than its type allows."""
    field_maps: str | None = None
    """A YAML file with the keys of image and 3D items."""
    max_frames: int = 64
    """Most frames of a video, evenly spaced."""
    points: Literal["render", "refuse"] = "render"
    """Treatment of point clouds, which chat models do not take: pictures from four sides, or an error."""
    weights: str | None = None
    """Folder with the weights of networks of metrics."""
    download: bool = False
    """Whether missing weights may be downloaded from the hub."""
    score_device: str = "cpu"
    """The device of those networks."""
    ratings: str | None = None
    """A file with people's ratings."""
    reference_features: str | None = None
    """A folder with features of the references, computed elsewhere."""
    fad_network: Literal["vggish", "clap"] = "vggish"
    """Network that computes the features for FAD."""
    wer_words: Literal["spoken", "written"] = "spoken"
    """Words for word error rates: without case and punctuation, or unchanged."""
    tracking: Literal["auc", "j_and_f"] = "auc"
    """Number of tracking tasks: the workbook's area under the success curve, or the authors' J&F."""
    s_measure: Literal["published", "authors"] = "published"
    """The formula of the structure measure: the published one, or the authors' simplified one."""

    def check(self) -> None:
        name = self.prediction_name
        if not isinstance(name, str) or Path(name).name != name or Path(name).suffix != ".json":
            raise wrong_option(self.benchmark, "prediction_name", "a bare file name that ends with .json", name)
        if name == ANNOTATION:
            raise wrong_option(self.benchmark, "prediction_name", f"another name than {ANNOTATION}", name)

    @property
    def root(self) -> Path | None:
        """The folder of the data, or ``None`` if it was not given."""
        return self.folder or (None if self.data_root is None else Path(self.data_root))

    @property
    def context(self) -> Context:
        """The context for measures."""
        options: dict[str, Any] = {
            name: getattr(self, name) for name in ("fad_network", "wer_words", "tracking", "s_measure")
        }
        if self.reference_features is not None:
            options["reference_features"] = Path(self.reference_features)
        return Context(
            weights=None if self.weights is None else Path(self.weights),
            download=self.download,
            device=self.score_device,
            ratings=None if self.ratings is None else Path(self.ratings),
            options=options,
        )

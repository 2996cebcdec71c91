"""Options in the form in which they are used: lists and mappings of what was given as a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmms_eval.utils.arguments import comma_list


class DerivedOptions:
    """Properties of ``RunConfig``, which declares the options."""

    __slots__ = ()

    if TYPE_CHECKING:
        allow_media: str | None
        gen_kwargs: str | dict[str, Any]
        include_path: str | tuple[str, ...] | None
        judge_args: str | dict[str, Any]
        launcher_args: str | dict[str, Any] | None
        model_args: str | dict[str, Any]
        plugins: str | None
        reasoning_tags: str
        t2i_args: str | dict[str, Any]
        task_kwargs: str | dict[str, Any]
        tasks: str | None
        thinking_tags: str | None

    @property
    def task_names(self) -> tuple[str, ...]:
        """The parts of ``tasks``, in order."""
        return comma_list(self.tasks)

    @property
    def include_paths(self) -> tuple[str, ...]:
        if self.include_path is None:
            return ()
        return (self.include_path,) if isinstance(self.include_path, str) else self.include_path

    @property
    def plugin_packages(self) -> tuple[str, ...]:
        return comma_list(self.plugins)

    @property
    def allowed_media(self) -> tuple[str, ...]:
        return comma_list(self.allow_media)

    @property
    def model_arguments(self) -> dict[str, Any]:
        """``model_args`` as keyword arguments."""
        from lmms_eval.config.convert import argument_mapping

        return argument_mapping(self.model_args, "model_args")

    @property
    def launcher_arguments(self) -> dict[str, Any]:
        """``launcher_args`` as a mapping."""
        from lmms_eval.config.convert import argument_mapping

        return argument_mapping(self.launcher_args, "launcher_args")

    @property
    def judge_arguments(self) -> dict[str, Any]:
        """``judge_args`` as keyword arguments."""
        from lmms_eval.config.convert import argument_mapping

        return argument_mapping(self.judge_args, "judge_args")

    @property
    def t2i_arguments(self) -> dict[str, Any]:
        """``t2i_args`` as keyword arguments."""
        from lmms_eval.config.convert import argument_mapping

        return argument_mapping(self.t2i_args, "t2i_args")

    @property
    def generation_arguments(self) -> dict[str, Any]:
        """``gen_kwargs`` as a mapping; a text that is a JSON object or list is decoded."""
        from lmms_eval.config.convert import argument_mapping, decoded

        return {name: decoded(value) for name, value in argument_mapping(self.gen_kwargs, "gen_kwargs").items()}

    @property
    def task_arguments(self) -> dict[str, Any]:
        """``task_kwargs`` as a mapping."""
        from lmms_eval.config.convert import argument_mapping

        return argument_mapping(self.task_kwargs, "task_kwargs")

    @property
    def reasoning_tag_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of ``reasoning_tags``; empty when switched off."""
        from lmms_eval.config.convert import tag_pairs

        return tag_pairs(self.reasoning_tags)

    @property
    def thinking_tag_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs of ``thinking_tags``, that mark thoughts, in addition to the known ones."""
        from lmms_eval.config.convert import tag_pairs

        return tag_pairs(self.thinking_tags or "", "thinking_tags")

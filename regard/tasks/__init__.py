"""The registry of tasks: one line each; and the settings of a run, which depend on its task and its model."""

from collections.abc import Mapping
from typing import Any

from regard.config import Config, Settings, Values, assemble, validated
from regard.errors import UserError, nearest
from regard.models import parse_model
from regard.tasks.answer import Answer
from regard.tasks.base import Task
from regard.tasks.choose import Choose
from regard.tasks.classify import Classify
from regard.tasks.denoise import Denoise
from regard.tasks.image import Image
from regard.tasks.language import LanguageModelling
from regard.tasks.masked import Masked
from regard.tasks.summarize import Summarize
from regard.tasks.tag import Tag
from regard.tasks.translate import Translate

TASKS: dict[str, type[Task]] = {
    "translate": Translate,
    "language": LanguageModelling,
    "summarize": Summarize,
    "denoise": Denoise,
    "classify": Classify,
    "tag": Tag,
    "answer": Answer,
    "choose": Choose,
    "masked": Masked,
    "image": Image,
}


def task_named(name: str) -> type[Task]:
    if name not in TASKS:
        raise UserError(f"task = {name!r}: unknown{nearest(name, TASKS)}")
    return TASKS[name]


def settings_of(layers: list[tuple[str, Values]]) -> tuple[Config, dict[str, str]]:
    """A run's config from layers of values, and the origin of each value; see `regard.config.assemble`."""
    return assemble(layers, {"model": _model, "options": _options})


def _model(values: Mapping[str, Any]) -> Settings:
    return parse_model(values.get("model", {}))


def _options(values: Mapping[str, Any]) -> Settings:
    return validated(task_named(values.get("task", "")).Options, values.get("options", {}), "options.")

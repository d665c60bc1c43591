"""The registry of tasks: one line each."""

from regard.errors import UserError, nearest
from regard.tasks.base import Task
from regard.tasks.translate import Translate

TASKS: dict[str, type[Task]] = {
    "translate": Translate,
}


def task_named(name: str) -> type[Task]:
    if name not in TASKS:
        raise UserError(f"task = {name!r}: unknown{nearest(name, TASKS)}")
    return TASKS[name]

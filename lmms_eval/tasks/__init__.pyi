"""Names of this package by their modules; see ``lmms_eval.utils.lazy``."""

from lmms_eval.tasks.catalogue import Catalogue as Catalogue
from lmms_eval.tasks.manager import TaskManager as TaskManager
from lmms_eval.tasks.manager import get_task_dict as get_task_dict
from lmms_eval.tasks.selection import build_from_spec as build_from_spec
from lmms_eval.tasks.selection import select_tasks as select_tasks
from lmms_eval.tasks.yaml.task import YamlTask as YamlTask

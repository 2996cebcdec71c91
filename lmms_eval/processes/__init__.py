"""Child processes that may hang or die: one child (``Child``), its own side (``Parent``), and a pool of children."""

from lmms_eval.processes.child import Child, ChildError, Parent, descendants, module_command
from lmms_eval.processes.pool import Pool

__all__ = ["Child", "ChildError", "Parent", "Pool", "descendants", "module_command"]

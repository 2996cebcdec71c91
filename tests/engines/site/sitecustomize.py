"""Python reads this at its start where the folder is on ``PYTHONPATH``: in the engines' own processes too."""

from tests.torchvision_operators import declare_on_import

declare_on_import()

from lmms_eval.results.load import Run as Run
from lmms_eval.results.load import RunTask as RunTask
from lmms_eval.results.load import load as load
from lmms_eval.results.sample import Sample as Sample

from lmms_eval.results.run import Run as Run
from lmms_eval.results.run import RunTask as RunTask
from lmms_eval.results.run import load as load
from lmms_eval.results.sample import Sample as Sample

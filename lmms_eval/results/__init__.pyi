from lmms_eval.results.run_reader.run import Run as Run
from lmms_eval.results.run_reader.run import load as load
from lmms_eval.results.run_reader.sample import Sample as Sample
from lmms_eval.results.run_reader.task import RunTask as RunTask

from lmms_eval.results.run_reader.run import Run as Run
from lmms_eval.results.run_reader.run import RunTask as RunTask
from lmms_eval.results.run_reader.run import load as load
from lmms_eval.results.run_reader.sample import Sample as Sample

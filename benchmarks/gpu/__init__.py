"""Measure local models on a GPU: models of realistic sizes with random weights, without network.

    python -m benchmarks.gpu                 # one JSON object on standard output; within eight minutes
    python -m benchmarks.gpu --size tiny     # the same on a CPU, to check that it works

Bars: tokens per second of ``--model hf`` at least 0.97 of the best bare ``generate`` loop; the device waits for the
host between two calls for at most 3 % of the time.
"""

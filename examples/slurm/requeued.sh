#!/usr/bin/env bash
# requeued.sh COMMAND...: runs the command of a job; where it was stopped (preemption, the end of the job's time), puts
# the job back into the queue. The same command goes on from the journals. MAX_REQUEUES (50) bounds that.
: "${SLURM_JOB_ID:?runs in a SLURM job}"
# shellcheck source=examples/slurm/stoppable.sh
. "$(dirname "${BASH_SOURCE[0]}")/stoppable.sh" || exit 1

stoppable "$@"
code=$?
case $code in
  129 | 130 | 143)
    if [ "${SLURM_RESTART_COUNT:-0}" -lt "${MAX_REQUEUES:-50}" ]; then
      echo "stopped: back into the queue" >&2
      scontrol requeue "$SLURM_JOB_ID"
    else
      echo "stopped after ${MAX_REQUEUES:-50} requeues (MAX_REQUEUES): the same command goes on from here" >&2
    fi
    ;;
esac
exit "$code"

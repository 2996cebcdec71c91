#!/usr/bin/env bash
#SBATCH --job-name=lmms-eval
#SBATCH --array=0-3
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
# A job for each line of a list of tasks:
#   sbatch --array=0-$(($(grep -c . TASKS) - 1)) examples/slurm/array.sh TASKS OUT --model hf --model_args pretrained=...
# TASKS: a file with a task, a group, or tasks with commas between them in each line. OUT: a folder that all nodes see.
# Start it in the project's folder, or say in LMMS_EVAL_SLURM where the scripts lie: SLURM copies this one elsewhere.
set -euo pipefail
list=${1:?a file with a line for each task}
out=${2:?a folder for the results}
shift 2
scripts=${LMMS_EVAL_SLURM:-${SLURM_SUBMIT_DIR:?}/examples/slurm}
tasks=$(grep . "$list" | sed -n "$((SLURM_ARRAY_TASK_ID + 1))p")
: "${tasks:?$list has no line $((SLURM_ARRAY_TASK_ID + 1))}"

exec bash "$scripts/requeued.sh" srun \
  lmms-eval --tasks "$tasks" --output_path "$out/${tasks//[^a-zA-Z0-9_.-]/_}" --log_samples "$@"

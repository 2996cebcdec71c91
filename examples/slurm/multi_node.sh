#!/usr/bin/env bash
#SBATCH --job-name=lmms-eval
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=08:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
# One evaluation over several nodes, a process for each GPU (PROCESSES of a node, by default its GPUs):
#   sbatch --nodes=4 examples/slurm/multi_node.sh --model hf --model_args pretrained=... --tasks ... --output_path OUT
# The nodes need no common folder, but a job that goes on elsewhere needs its OUT.
set -euo pipefail
scripts=${LMMS_EVAL_SLURM:-${SLURM_SUBMIT_DIR:?}/examples/slurm}
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
MASTER_ADDR=${nodes%%$'\n'*} # no head(1): what writes to it may die of the closed pipe
MASTER_PORT=${MASTER_PORT:-$((20000 + SLURM_JOB_ID % 20000))}
PROCESSES=${PROCESSES:-${SLURM_GPUS_ON_NODE:-1}}
export MASTER_ADDR MASTER_PORT PROCESSES

# shellcheck disable=SC2016 # SLURM_NODEID is each node's own
exec bash "$scripts/requeued.sh" srun bash "$scripts/stoppable.sh" bash -c '
  exec torchrun --nnodes "$SLURM_JOB_NUM_NODES" --node_rank "$SLURM_NODEID" --nproc_per_node "$PROCESSES" \
    --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" -m lmms_eval "$@"' torchrun "$@"

#!/usr/bin/env bash
#SBATCH --job-name=lmms-eval
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=08:00:00
#SBATCH --requeue
# A requeued job goes on where the last one was stopped: the command is the same.
set -euo pipefail
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR
srun bash -c 'NODE_RANK=$SLURM_NODEID exec bash examples/launch/two_nodes_torchrun.sh'

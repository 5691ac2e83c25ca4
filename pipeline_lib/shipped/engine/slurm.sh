#!/bin/bash
# Runs a workspace's pipeline on a Ray cluster of all nodes of a Slurm job.
#
#   sbatch --partition=… --account=… --time=… FILE
#
# Options of your site can also stand below, as #SBATCH lines.  The workspace and the environment
# must be on a file system that all nodes share.  After a time limit, submit it again: it goes on.
#SBATCH --job-name=distill
#SBATCH --nodes={{ nodes }}
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
{% if gpus %}
#SBATCH --gpus-per-node={{ gpus }}
{% endif %}
set -euo pipefail

export PATH={{ bin|quote }}:"$PATH"
unset RAY_ADDRESS
cd {{ workspace|quote }}

# The script runs on the first node, whose Ray is the head.  Jobs on one node have different ports.
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${hosts[0]}
ip=$(hostname --ip-address | cut -d ' ' -f 1)
port=$((20000 + SLURM_JOB_ID % 10000))
address="$ip:$port"

start_ray() {  # options of srun -- options of ray
    # Without --cpu-bind a task, and all of Ray, may have one core.
    srun --overlap --cpu-bind=none --ntasks-per-node=1 "${@:1:3}" \
        ray start --block --disable-usage-stats{{ " --num-gpus=%d"|format(gpus) if gpus }} "${@:4}" &
}

stop_ray() {
    kill $(jobs -p) 2> /dev/null || true
    wait || true
}
trap stop_ray EXIT

start_ray --nodes=1 --ntasks=1 --nodelist="$head" \
    --head --node-ip-address="$ip" --port="$port" --include-dashboard=false
distill engine check "$address"
{% if nodes > 1 %}
start_ray --nodes={{ nodes - 1 }} --ntasks={{ nodes - 1 }} --exclude="$head" --address="$address"
distill engine check "$address" --nodes {{ nodes }}
{% endif %}

export {{ variable }}="$address"
{{ run }}

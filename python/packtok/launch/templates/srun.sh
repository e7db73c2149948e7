# shellcheck shell=bash disable=SC2034,SC2154
tasks=$(declare -p outdir packtok; declare -f stop interruptible run pack_shard pack_my_shards)
tasks+='
stopping="" worker="" stop_signal=INT
trap "stop time" USR1
set -u
pack_my_shards'
# srun takes SIGINT for itself, and hands on SIGUSR1.
stop_signal=USR1
# Some versions give the tasks of a step one CPU each unless they are told.
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
run srun --export=ALL --kill-on-bad-exit=0 --open-mode=append --output=@log@ bash -c "$tasks"
status=$?
if [ "$status" -gt 128 ] || [ -n "$stopping" ]; then settle "$status"; fi
# Of shards that are missing it says which.
stop_signal=INT
@join@
settle $?

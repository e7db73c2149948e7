# shellcheck shell=bash disable=SC2034,SC2154
tasks=$(declare -p outdir packtok; declare -f stop interruptible run pack_shard pack_my_shards)
tasks+='
stopping="" worker="" stop_signal=INT
trap "stop time" USR1
set -u
pack_my_shards'
# srun handles SIGINT itself, but forwards SIGUSR1 to the tasks.
stop_signal=USR1
# Some versions of Slurm give each task of a step one CPU unless this is set.
export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
run srun --export=ALL --kill-on-bad-exit=0 --open-mode=append --output=@log@ bash -c "$tasks"
status=$?
if [ "$status" -gt 128 ] || [ -n "$stopping" ]; then settle "$status"; fi
# The join reports missing shards.
stop_signal=INT
@join@
settle $?

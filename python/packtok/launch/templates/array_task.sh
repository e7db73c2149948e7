# shellcheck shell=bash disable=SC2034,SC2154
# An array has no numbers beyond a limit of the cluster's; shards above it are counted from here.
pack_shard "$((SLURM_ARRAY_TASK_ID + ${PACKTOK_FIRST_SHARD:-0}))"
settle $?

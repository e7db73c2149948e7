# shellcheck shell=bash disable=SC2034,SC2154
# Slurm limits task ids; PACKTOK_FIRST_SHARD is added to reach shards beyond the limit.
pack_shard "$((SLURM_ARRAY_TASK_ID + ${PACKTOK_FIRST_SHARD:-0}))"
settle $?

# shellcheck shell=bash disable=SC2034,SC2154
# Packs this task's shards (every n-th shard in each of n tasks) and returns the highest exit code.
pack_my_shards() {
  local shards=(@shards@) highest=0 i
  for ((i = SLURM_PROCID; i < ${#shards[@]}; i += SLURM_NTASKS)); do
    if [ -n "$stopping" ]; then return 130; fi
    pack_shard "${shards[i]}"
    local status=$?
    if [ "$status" -gt "$highest" ]; then highest=$status; fi
  done
  return "$highest"
}

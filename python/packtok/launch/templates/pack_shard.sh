# shellcheck shell=bash disable=SC2034,SC2154
# Packs shard $1.
pack_shard() {
  echo "packtok: shard $1 of @num_shards@, $(uname -n), $(date -u +%FT%TZ), restart ${SLURM_RESTART_COUNT:-0}"
  run interruptible "${packtok[@]}" @pack@
}

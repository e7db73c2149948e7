# shellcheck shell=bash disable=SC2034,SC2154
# Starts Ray on the nodes of this job: the head here, the other nodes with srun. It stops with this script.
ray=(@ray@)
logs=@logs@
head_log="$logs/ray_head_$SLURM_JOB_ID.out"
# Anyone who can reach Ray can run programs as this user, so Ray requires a secret token.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
trap 'kill $(jobs -p) 2>/dev/null' EXIT

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# Above the port range of Ray's workers, and different from the port before a restart, which may still be in use.
restart=${SLURM_RESTART_COUNT:-0}
port=$((20500 + (SLURM_JOB_ID * 7 + restart) % 10000))
while is_taken "$port"; do port=$((port + 1)); done

# Documents do not go through Ray, so its object store can be small.
node=(--num-cpus="$SLURM_CPUS_PER_TASK" --object-store-memory=80000000 --block)
: >"$head_log"
"${ray[@]}" start --head --port="$port" --include-dashboard=false --disable-usage-stats \
  --temp-dir="/tmp/ray-$SLURM_JOB_ID-$restart" "${node[@]}" >>"$head_log" 2>&1 </dev/null &
head=$!
address=''
for ((i = 0; i < 600; i++)); do
  address=$(sed -n 's/.*Local node IP: *//p' "$head_log" | tr -cd '0-9a-fA-F.:')
  if [ -n "$address" ] && is_taken "$port"; then break; fi
  address=''
  if [ -n "$stopping" ] || ! kill -0 "$head" 2>/dev/null; then break; fi
  sleep 0.2
done
if [ -z "$address" ]; then
  echo "packtok: Ray did not start; see $head_log" >&2
  settle 1
fi
export RAY_ADDRESS="$address:$port"
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  others=$((SLURM_JOB_NUM_NODES - 1))
  srun --export=ALL --nodes="$others" --ntasks="$others" --exclude="$SLURMD_NODENAME" --kill-on-bad-exit=0 \
    --open-mode=append --output="${logs//%/%%}/ray_nodes_%j.out" \
    "${ray[@]}" start --address="$RAY_ADDRESS" --disable-usage-stats "${node[@]}" </dev/null &
fi
# Does not wait for all nodes: a node that joins later gets a part of the remaining work.
run interruptible "${packtok[@]}" retry "$outdir"
settle $?

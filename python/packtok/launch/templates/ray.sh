# shellcheck shell=bash disable=SC2034,SC2154
# Ray on the nodes of this job: the head here, the others all at once by srun. It ends with this script.
ray=(@ray@)
logs=@logs@
head_log="$logs/ray_head_$SLURM_JOB_ID.out"
# Whoever can talk to Ray can run programs as this user, so it is told a secret that it asks for.
RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN RAY_USAGE_STATS_ENABLED=0
trap 'kill $(jobs -p) 2>/dev/null' EXIT

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# Above the ports of Ray's own workers, and not those of this job's Ray before a restart, which may be ending.
restart=${SLURM_RESTART_COUNT:-0}
port=$((20500 + (SLURM_JOB_ID * 7 + restart) % 10000))
while is_taken "$port"; do port=$((port + 1)); done

# Documents do not go through Ray, so that it needs no memory to share them.
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
# It waits for nobody: a node that comes later gets what is left to do then.
run interruptible "${packtok[@]}" retry "$outdir"
settle $?

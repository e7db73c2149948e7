# shellcheck shell=bash disable=SC2034,SC2154
# What follows from exit code $1: a job that was stopped for its time, or that lost packtok to a signal such
# as the out-of-memory killer's, goes back into the queue, but not for ever. Other errors would come again.
settle() {
  local why restarts=${SLURM_RESTART_COUNT:-0} max_restarts=@max_restarts@
  if [ "$1" -eq 0 ]; then exit 0; fi
  case $stopping in
    time) why='the time limit is near' ;;
    end) exit "$1" ;;
    *)
      # 130 is packtok's own word for an interruption by somebody else.
      if [ "$1" -le 128 ] || [ "$1" -eq 130 ]; then exit "$1"; fi
      why="packtok was killed by signal $(($1 - 128))"
      ;;
  esac
  if [ "$restarts" -ge "$max_restarts" ]; then
    echo "packtok: $why, after $restarts restarts; to resume, run: packtok retry $outdir" >&2
    exit "$1"
  fi
  echo "packtok: $why; requeueing the job" >&2
  trap - TERM
  # Slurm ends this script then.
  if timeout 60 scontrol requeue @job@; then sleep 60; fi
  exit "$1"
}

# shellcheck shell=bash disable=SC2034,SC2154
# Handles exit code $1. A job is requeued, a limited number of times, if it stopped before its time limit or if a
# signal killed packtok, such as that of the out-of-memory killer. Other errors would occur again.
settle() {
  local why restarts=${SLURM_RESTART_COUNT:-0} max_restarts=@max_restarts@
  if [ "$1" -eq 0 ]; then exit 0; fi
  case $stopping in
    time) why='the time limit is near' ;;
    end) exit "$1" ;;
    *)
      # packtok exits with 130 if someone else interrupts it.
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
  # Slurm ends this script during the sleep.
  if timeout 60 scontrol requeue @job@; then sleep 60; fi
  exit "$1"
}

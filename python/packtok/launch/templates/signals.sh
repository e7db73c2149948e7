# shellcheck shell=bash disable=SC2034,SC2154
# Why packtok was asked to stop: "time" before the time limit, "end" when Slurm ends the job.
stopping=''
worker=''
stop_signal=INT
stop() {
  stopping=$1
  if [ -n "$worker" ]; then kill -s "$stop_signal" "$worker" 2>/dev/null; fi
}
trap 'stop time' USR1
trap 'stop end' TERM

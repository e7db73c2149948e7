# shellcheck shell=bash disable=SC2034,SC2154
set -u

outdir=@outdir@
packtok=(@program@)

# Runs a command that responds to SIGINT, which bash ignores in commands started with &, but not to SIGUSR1, which
# is for this script.
interruptible() {
  trap - INT
  trap '' USR1
  exec "$@"
}

# Runs a command and returns its exit code. A signal to this script stops the command, but not the wait for it.
run() {
  local status
  "$@" &
  worker=$!
  if [ -n "$stopping" ]; then stop "$stopping"; fi
  wait "$worker"
  status=$?
  while kill -0 "$worker" 2>/dev/null; do
    wait "$worker"
    status=$?
  done
  worker=''
  return "$status"
}

# shellcheck shell=bash disable=SC2034,SC2154
set -u

outdir=@outdir@
packtok=(@program@)

# Becomes a command that heeds SIGINT, which bash switches off behind &, and not SIGUSR1, which is for us.
interruptible() {
  trap - INT
  trap '' USR1
  exec "$@"
}

# Runs a command and returns its exit code. A signal to this script stops the command, and not this waiting.
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

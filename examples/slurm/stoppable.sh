#!/usr/bin/env bash
# stoppable.sh COMMAND...: runs a command and passes SIGTERM and SIGUSR1 on to it as SIGTERM. Exit code: the command's,
# or 143 where it was told to stop and did not finish. (Launchers such as torchrun end with 1 then.)

pass_on() {
  stopped=yes
  if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null; fi
}

stoppable() {
  local code stopped='' child=''
  trap pass_on TERM USR1
  "$@" &
  child=$!
  if [ -n "$stopped" ]; then kill -TERM "$child" 2>/dev/null; fi
  wait "$child"
  code=$?
  while kill -0 "$child" 2>/dev/null; do # a signal ends "wait" before the command has ended
    wait "$child"
    code=$?
  done
  if [ -n "$stopped" ] && [ "$code" -ne 0 ]; then code=143; fi
  return "$code"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  stoppable "$@"
  exit
fi

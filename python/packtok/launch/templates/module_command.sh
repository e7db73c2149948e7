# shellcheck shell=bash disable=SC2034,SC2154
# Not every site defines the command for scripts as well.
if ! type module >/dev/null 2>&1; then
  for init in "${LMOD_PKG:-/usr/share/lmod/lmod}" "${MODULESHOME:-/usr/share/modules}"; do
    # shellcheck source=/dev/null
    if [ -r "$init/init/bash" ]; then . "$init/init/bash"; break; fi
  done
fi

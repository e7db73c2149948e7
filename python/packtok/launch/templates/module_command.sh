# shellcheck shell=bash disable=SC2034,SC2154
# On some sites, scripts do not have the command module.
if ! type module >/dev/null 2>&1; then
  for init in "${LMOD_PKG:-/usr/share/lmod/lmod}" "${MODULESHOME:-/usr/share/modules}"; do
    # shellcheck source=/dev/null
    if [ -r "$init/init/bash" ]; then . "$init/init/bash"; break; fi
  done
fi

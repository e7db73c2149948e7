# shellcheck shell=bash disable=SC2034,SC2154
@join@
settle $?

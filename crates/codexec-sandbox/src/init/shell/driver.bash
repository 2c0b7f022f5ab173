# Sourced once by the shell of a session, before any cell. The shell's own output goes to /dev/null;
# each cell's line opens the cell's output. Reports go to descriptor 98, and the state for a
# successor of this shell to 99.
PS1= PS2= PROMPT_COMMAND=
unset HISTFILE MAILCHECK
set +o history
# A shell that starts while its directory is mounted anew cannot find out where it is.
builtin cd /box/work
unset OLDPWD

# The directory may have been mounted anew since the last cell; its path leads to the new one. Where
# the path leads nowhere, no code runs: it would act on another directory than it was written for.
codexec_enter() {
  builtin local "OLDPWD=${OLDPWD-}" "codexec_path=${PWD:-$(builtin pwd)}"
  [[ $codexec_path == /* ]] && builtin cd -- "$codexec_path" && return 0
  builtin cd /box/work || :
  builtin printf -v CODEXEC_EXIT 'gone %q' "${codexec_path:0:1000}"
  return 1
}

# `exit` ends the cell, not the shell: an interrupted interactive shell aborts what it does and
# reads its next line.
exit() {
  if [[ $BASHPID == "$$" ]]; then
    CODEXEC_EXIT=${1-$?}
    builtin kill -INT "$$"
    :
  else
    builtin exit "$@"
  fi
}

# A failed command under `set -e` ends the cell in the same way.
codexec_failed() {
  [[ $- == *e* && $BASHPID == "$$" ]] || return 0
  CODEXEC_EXIT=$1
  builtin kill -INT "$$"
  :
}
trap 'codexec_failed $?' ERR
set -E

# So does the stop signal. The trap runs before the next command.
codexec_stop() {
  builtin trap - INT
  builtin kill -INT "$$"
  :
}
trap codexec_stop RTMAX

# If the shell ends in any other way, it dumps its state for its successor.
codexec_leave() {
  [[ $BASHPID == "$$" ]] || return 0
  {
    builtin declare -p && builtin declare -fp && builtin alias -p && builtin trap -p &&
      builtin shopt -p && builtin umask -p &&
      builtin printf 'builtin cd -- %q || PWD=%q\n' "${PWD:-$(builtin pwd)}" \
        "${PWD:-$(builtin pwd)}" &&
      builtin set +o && builtin printf '# whole\n'
  } >&99 2>/dev/null
}
trap codexec_leave EXIT

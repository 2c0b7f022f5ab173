# How a shell of a session lives: read once when it starts, before any cell. Its own output goes
# nowhere; a cell's line opens the real one. Reports go out on descriptor 98, and what the shell
# leaves to the next one on 99.
PS1= PS2= PROMPT_COMMAND=
unset HISTFILE MAILCHECK
set +o history

# The directory may have been mounted anew since the last cell; its path leads to the new one. Where
# the path leads nowhere, no code runs: it would act on another directory than it was written for.
codexec_enter() {
  builtin local "OLDPWD=${OLDPWD-}" "codexec_path=${PWD:-$(builtin pwd)}"
  builtin cd -- "$codexec_path" && return 0
  builtin cd /box/work || :
  builtin printf -v CODEXEC_EXIT 'gone %q' "${codexec_path:0:1000}"
  return 1
}

# `exit` ends the cell and not the shell: an interactive shell that is interrupted drops all that it
# does, and takes its next line.
exit() {
  if [[ $BASHPID == "$$" ]]; then
    CODEXEC_EXIT=${1-$?}
    builtin kill -INT "$$"
    :
  else
    builtin exit "$@"
  fi
}

# A failure under `set -e` does the same.
codexec_failed() {
  [[ $- == *e* && $BASHPID == "$$" ]] || return 0
  CODEXEC_EXIT=$1
  builtin kill -INT "$$"
  :
}
trap 'codexec_failed $?' ERR
set -E

# So does the signal for a cell that is to stop. It runs before the next command does.
codexec_stop() {
  builtin trap - INT
  builtin kill -INT "$$"
  :
}
trap codexec_stop RTMAX

# Whatever else ends the shell leaves what it knew to the next one.
codexec_leave() {
  [[ $BASHPID == "$$" ]] || return 0
  {
    builtin declare -p && builtin declare -fp && builtin alias -p && builtin trap -p &&
      builtin shopt -p && builtin umask -p && builtin printf 'builtin cd -- %q\n' "$PWD" &&
      builtin set +o && builtin printf '# whole\n'
  } >&99 2>/dev/null
}
trap codexec_leave EXIT

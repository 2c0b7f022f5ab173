# How a shell of a session lives: read once when it starts, before any cell. Its own output goes
# nowhere; a cell gets the real one, as descriptors 96 and 97, and reports go out on 98.
PS1= PS2= PROMPT_COMMAND=
unset HISTFILE MAILCHECK
set +o history

# The directory may have been mounted anew since the last cell; its path leads to the new one.
codexec_enter() {
  builtin local OLDPWD=$OLDPWD
  builtin cd -- "${PWD-/box/work}" || builtin cd /box/work || :
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

# Whatever else ends the shell leaves what it knew to the next one.
codexec_leave() {
  [[ $BASHPID == "$$" ]] || return 0
  {
    builtin declare -p && builtin declare -fp && builtin alias -p && builtin trap -p &&
      builtin shopt -p && builtin umask -p && builtin printf 'builtin cd -- %q\n' "$PWD" &&
      builtin set +o && builtin printf '# whole\n'
  } >|/box/cells/state 2>/dev/null
}
trap codexec_leave EXIT

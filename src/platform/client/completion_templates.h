// Holds the completion scripts of bash and zsh, with places for what depends on the commands: cases
// over the path of commands typed so far ("job/list") and the word that follows it.
// CompletionScript fills them.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::client {

inline constexpr absl::string_view kBashForm =
    R"sh(# Completion for bash: source <(tutti completion bash)
_tutti() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local at='' choices='' action='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at ${COMP_WORDS[i]}" in
@COMMANDS@    esac
  done
  case "$at $previous" in
@VALUES@  esac
  if [[ -z $action ]]; then
    case "$at" in
@CHOICES@    esac
    if [[ $current == -* || $choices == [a-z]* ]]; then
      COMPREPLY=($(compgen -W "$choices" -- "$current"))
      return
    fi
    case "$at" in
@PLACES@    esac
  fi
  case $action in
    words*) COMPREPLY=($(compgen -W "${action#words }" -- "$current")) ;;
    jobs) COMPREPLY=($(compgen -W "$(tutti __complete jobs 2>/dev/null)" -- "$current")) ;;
    files) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current")) ;;
    folders) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$current")) ;;
  esac
}
complete -F _tutti tutti
)sh";

inline constexpr absl::string_view kZshForm = R"sh(#compdef tutti
# Completion for zsh: source <(tutti completion zsh), after compinit
_tutti() {
  local current=${words[CURRENT]} previous=${words[CURRENT-1]}
  local at='' choices='' action='' i
  for ((i = 2; i < CURRENT; i++)); do
    case "$at ${words[i]}" in
@COMMANDS@    esac
  done
  case "$at $previous" in
@VALUES@  esac
  if [[ -z $action ]]; then
    case "$at" in
@CHOICES@    esac
    if [[ $current == -* || $choices == [a-z]* ]]; then
      compadd -- ${(s: :)choices}
      return
    fi
    case "$at" in
@PLACES@    esac
  fi
  case $action in
    words*) compadd -- ${(s: :)${action#words }} ;;
    jobs) compadd -- ${(f)"$(tutti __complete jobs 2>/dev/null)"} ;;
    files) _files ;;
    folders) _files -/ ;;
  esac
}
if [[ $funcstack[1] == _tutti ]]; then _tutti "$@"; else compdef _tutti tutti; fi
)sh";

}  // namespace tutti::client

// Finds the script that a shell command runs from its working folder, as far as that can be told
// without a shell. Thread-safe. Inside the room spec only.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

struct PlainScript {
  std::string path;      // as it is written, relative; empty: only a shell could tell
  bool decides = false;  // without it the command fails, whatever follows
};

// Returns the script of `python train.py`, `bash run.sh` or `./run.sh`, before which nothing could
// have made the file.
PlainScript PlainScriptOf(absl::string_view command);

// Returns whether `word` is a plain relative path of a script; nothing that the shell would change.
bool IsScript(absl::string_view word);

}  // namespace tutti::spec

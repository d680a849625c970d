// Parses a line of a Python traceback that names a file, a line and a function. Pure functions.
// Inside the room launch only.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace tutti::launch {

// Parts of the text that it was found in.
struct PythonFrame {
  absl::string_view path;
  absl::string_view line;      // a number
  absl::string_view function;  // "" of a syntax error
  // The path's last part.
  absl::string_view file() const { return path.substr(path.rfind('/') + 1); }
};

// Of "  File \"/w/a.py\", line 3, in f", or as Python's fault handler writes it, without the second
// comma; nullopt if `line` is no such line.
std::optional<PythonFrame> FrameIn(absl::string_view line);

}  // namespace tutti::launch

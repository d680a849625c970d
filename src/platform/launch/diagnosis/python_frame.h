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
  // Returns the path's last part.
  absl::string_view file() const { return path.substr(path.rfind('/') + 1); }
};

// Parses "  File \"/w/a.py\", line 3, in f", with or without the second comma, which Python's fault
// handler leaves out. Returns nullopt for any other line.
std::optional<PythonFrame> FrameIn(absl::string_view line);

}  // namespace tutti::launch

// Colours text where that is wanted: on a terminal, unless NO_COLOR is set (https://no-color.org)
// or TERM is "dumb".
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::client {

enum class Tint { kNone, kBold, kDim, kRed, kGreen, kYellow, kBlue, kMagenta, kCyan };

// Returns `text` in the tint, or as it is when `colour` is false.
std::string Styled(absl::string_view text, Tint tint, bool colour);

// Returns the colour of a rank, which it keeps through a run: six of them, then again from the
// first.
Tint TintOfRank(int rank);
// Returns green, red, yellow and so on, by what the state asks of the reader.
Tint TintOfState(absl::string_view state);

// Screen is what is known of one of the program's outputs.
struct Screen {
  bool is_terminal = false;
  bool colour = false;
  int width = 0;       // columns; 0: unlimited (not a terminal)
  bool moves = false;  // its cursor does, by escape sequences

  // Returns what is known of the open descriptor, by isatty, TIOCGWINSZ, COLUMNS, NO_COLOR and
  // TERM.
  static Screen Of(int fd);
};

}  // namespace tutti::client

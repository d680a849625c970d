#include "platform/client/text/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::client {
namespace {

absl::string_view CodeOf(Tint tint) {
  switch (tint) {
    case Tint::kNone:
      return "";
    case Tint::kBold:
      return "1";
    case Tint::kDim:
      return "2";
    case Tint::kRed:
      return "31";
    case Tint::kGreen:
      return "32";
    case Tint::kYellow:
      return "33";
    case Tint::kBlue:
      return "34";
    case Tint::kMagenta:
      return "35";
    case Tint::kCyan:
      return "36";
  }
  return "";
}

int WidthOf(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  int columns = 0;
  const char* text = std::getenv("COLUMNS");
  return text != nullptr && absl::SimpleAtoi(text, &columns) && columns > 0 ? columns : 80;
}

bool KnowsSequences() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && *terminal != '\0' && absl::string_view(terminal) != "dumb";
}

bool WantsColour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && KnowsSequences();
}

}  // namespace

std::string Styled(absl::string_view text, Tint tint, bool colour) {
  if (!colour || tint == Tint::kNone || text.empty()) return std::string(text);
  return absl::StrCat("\x1b[", CodeOf(tint), "m", text, "\x1b[0m");
}

Tint TintOfRank(int rank) {
  static constexpr std::array kTints = {Tint::kCyan, Tint::kMagenta, Tint::kYellow,
                                        Tint::kBlue, Tint::kGreen,   Tint::kNone};
  return kTints[static_cast<size_t>(rank < 0 ? 0 : rank) % kTints.size()];
}

Tint TintOfState(absl::string_view state) {
  if (state == "Completed" || state == "idle") return Tint::kGreen;
  if (state == "Failed" || state == "unusable") return Tint::kRed;
  if (state == "Canceled" || state == "cordoned") return Tint::kYellow;
  if (state == "Running" || state == "running") return Tint::kCyan;
  return Tint::kNone;
}

Screen Screen::Of(int fd) {
  Screen screen;
  screen.is_terminal = ::isatty(fd) == 1;
  if (!screen.is_terminal) return screen;
  screen.width = WidthOf(fd);
  screen.colour = WantsColour();
  screen.moves = KnowsSequences();
  return screen;
}

}  // namespace tutti::client

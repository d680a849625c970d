// LiveText writes lines that stay and, below them, some that change: a terminal shows the changing
// lines at its end, redrawn in place; on a pipe there are none. Not thread-safe.
#pragma once

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/client/text/style.h"

namespace tutti::client {

class LiveText {
 public:
  LiveText(std::ostream& out, Screen screen) : out_(out), screen_(screen) {}
  // Takes the changing lines away.
  ~LiveText();
  LiveText(const LiveText&) = delete;
  LiveText& operator=(const LiveText&) = delete;

  const Screen& screen() const { return screen_; }

  // Prints a line that stays; shown at the next Flush.
  void Print(absl::string_view line);
  // Sets what the changing lines say, with newlines between them, each at most width - 1 columns;
  // "" takes them away. Nothing on a pipe.
  void SetStatus(absl::string_view status);
  // Sets the one changing line to how far something has come at `now`; on a pipe it becomes a line
  // that stays, once a minute.
  void SetProgress(absl::string_view line, absl::Time now);
  // Writes what changed since the last Flush, at once, so that the terminal does not flicker.
  void Flush();

 private:
  std::ostream& out_;
  const Screen screen_;
  std::string lines_;                         // printed since the last Flush
  std::string status_;                        // as it shall be
  std::string drawn_;                         // as it is on the terminal
  absl::Time told_ = absl::InfiniteFuture();  // when a pipe got its last progress, or it began
};

}  // namespace tutti::client

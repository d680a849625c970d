// Terminal has the user's terminal for frames that replace each other, and gives it back as it was:
// on the alternate screen, without cursor and echo, keys as they are pressed. Signals of this
// process become events meanwhile, so that it is given back on each of them. One at a time.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace tutti::client {

struct TerminalSize {
  int width = 80, height = 24;
};

class Terminal {
 public:
  // `in` may be no terminal: then no key comes.
  Terminal(int in, int out);
  // Leaves, and restores the handlers of signals.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Takes the terminal; again after Leave. An error: it is none, or gone.
  absl::Status Enter();
  // Gives it back. Enter may follow.
  void Leave();

  TerminalSize size() const;
  // Shows the lines in place of those before; none is wider than the terminal. Nothing is written
  // where they are the same. An error: the terminal is gone.
  absl::Status Draw(const std::vector<std::string>& lines);

  // Waits until something has come: a key, a signal, or Wake. At most that long.
  void Wait(absl::Duration most);
  // Ends a Wait, or the next one. From any thread, while it lives.
  void Wake();

  // Returns the bytes that have come, and takes them; `is_over` once there will be no more.
  std::string TakeBytes();
  bool is_over() const { return is_over_; }
  // Returns whether SIGINT, SIGTERM, SIGHUP or SIGQUIT has come.
  bool was_ended() const;
  // Stops the process where the user asked for that by SIGTSTP, with the terminal given back
  // meanwhile, and takes the terminal again where the process was stopped by whatever.
  absl::Status StopIfAsked();

 private:
  absl::Status Write(absl::string_view text);

  const int in_, out_;
  base::UniqueFd wake_;
  bool entered_ = false;
  bool has_modes_ = false;  // `before_` is what the terminal had
  bool is_over_ = false;
  termios before_{};
  std::vector<std::string> drawn_;
  TerminalSize drawn_size_{0, 0};
};

}  // namespace tutti::client

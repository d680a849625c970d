#include "platform/client/top/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::client {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};
// The alternate screen, without cursor, where lines that are too long are cut; and back.
constexpr char kTake[] = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
constexpr char kGiveBack[] = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr int kTakesAll = 200;  // milliseconds in which a terminal that is read takes some bytes

// Written by the handler; lock-free atomics are allowed there.
std::atomic<bool> ended = false, stopped = false, continued = false;
std::atomic<int> wake_fd = -1;
std::array<struct sigaction, kSignals.size()> handlers_before;

void OnTerminalSignal(int number) {
  const int error = errno;
  if (number == SIGTSTP) {
    stopped = true;
  } else if (number == SIGCONT) {
    continued = true;
  } else if (number != SIGWINCH) {
    ended = true;
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_fd, &one, sizeof one);
  errno = error;
}

}  // namespace

Terminal::Terminal(int in, int out)
    : in_(in), out_(out), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  ended = stopped = continued = false;
  wake_fd = wake_.get();
  struct sigaction action {};
  action.sa_handler =
      &OnTerminalSignal;  // no SA_RESTART: a terminal that takes nothing holds nobody up
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &handlers_before[i]);
  }
}

Terminal::~Terminal() {
  Leave();
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &handlers_before[i], nullptr);
  }
  wake_fd = -1;
}

absl::Status Terminal::Enter() {
  if (!wake_.valid()) return absl::ResourceExhaustedError("no file descriptor is left");
  if (::isatty(in_) == 1) {
    if (!has_modes_ && ::tcgetattr(in_, &before_) != 0) {
      return base::ErrnoStatus("read the terminal's modes");
    }
    has_modes_ = true;
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // ISIG stays: Ctrl-C is a signal
    keys.c_iflag &= ~static_cast<tcflag_t>(IXON);           // Ctrl-S would hold the frames up
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    if (::tcsetattr(in_, TCSANOW, &keys) != 0) return base::ErrnoStatus("set the terminal's modes");
  }
  entered_ = true;
  drawn_size_ = {0, 0};
  return Write(kTake);
}

void Terminal::Leave() {
  if (!entered_) return;
  entered_ = false;
  // A terminal that nobody reads takes nothing, and must not hold up who was told to end.
  pollfd ready{out_, POLLOUT, 0};
  if (::poll(&ready, 1, kTakesAll) == 1) {
    [[maybe_unused]] const ssize_t n = ::write(out_, kGiveBack, sizeof kGiveBack - 1);
  }
  if (has_modes_) ::tcsetattr(in_, TCSANOW, &before_);
}

TerminalSize Terminal::size() const {
  winsize size{};
  if (::ioctl(out_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

absl::Status Terminal::Draw(const std::vector<std::string>& lines) {
  const TerminalSize now = size();
  const bool is_resized = now.width != drawn_size_.width || now.height != drawn_size_.height;
  if (lines == drawn_ && !is_resized) return absl::OkStatus();
  std::string bytes = is_resized ? "\x1b[2J" : "";
  const size_t shown = std::min<size_t>(lines.size(), now.height);
  // Each line is emptied before it is written: at the last column that would erase a character.
  for (size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&bytes, "\x1b[", i + 1, ";1H\x1b[2K", lines[i]);
  }
  if (shown < static_cast<size_t>(now.height)) {
    absl::StrAppend(&bytes, "\x1b[", shown + 1, ";1H\x1b[J");
  }
  drawn_ = lines;
  drawn_size_ = now;
  return Write(bytes);
}

absl::Status Terminal::Write(absl::string_view text) {
  while (!text.empty() && !ended) {
    const ssize_t n = ::write(out_, text.data(), text.size());
    if (n > 0) {
      text.remove_prefix(n);
    } else if (n < 0 && errno == EAGAIN) {
      pollfd ready{out_, POLLOUT, 0};
      ::poll(&ready, 1, kTakesAll);
    } else if (n < 0 && errno != EINTR) {
      return base::ErrnoStatus("write to the terminal");
    }
  }
  return absl::OkStatus();
}

void Terminal::Wait(absl::Duration most) {
  const bool has_keys = has_modes_ && !is_over_;
  pollfd waiting[] = {{wake_.get(), POLLIN, 0}, {has_keys ? in_ : -1, POLLIN, 0}};
  const int64_t milliseconds = std::max<int64_t>(0, absl::ToInt64Milliseconds(most));
  if (::poll(waiting, 2, static_cast<int>(milliseconds)) <= 0) return;
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
}

void Terminal::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

std::string Terminal::TakeBytes() {
  pollfd ready{in_, POLLIN, 0};
  if (!has_modes_ || is_over_ || ::poll(&ready, 1, 0) <= 0) return "";
  char bytes[256];
  const ssize_t n = ::read(in_, bytes, sizeof bytes);
  if (n > 0) return {bytes, static_cast<size_t>(n)};
  if (n == 0 || (errno != EINTR && errno != EAGAIN)) is_over_ = true;
  return "";
}

bool Terminal::was_ended() const { return ended; }

absl::Status Terminal::StopIfAsked() {
  if (stopped.exchange(false)) {
    Leave();
    ::raise(SIGSTOP);
    continued = true;
  }
  return continued.exchange(false) ? Enter() : absl::OkStatus();
}

}  // namespace tutti::client

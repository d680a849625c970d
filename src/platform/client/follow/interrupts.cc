#include "platform/client/follow/interrupts.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iostream>

namespace tutti::client {
namespace {

// Written by the signal handlers; std::atomic<int> is lock-free and so allowed there.
std::atomic<int> interrupt_count = 0;
std::atomic<bool> terminated = false;
struct sigaction old_interrupt, old_terminate;

void OnSignal(int number) {
  ++interrupt_count;
  if (number == SIGTERM) terminated = true;
}

// Returns the first character of the next line from the terminal; 0 at its end, or when another
// signal comes first. Looks for that ten times a second: a signal just before poll would not wake
// it.
char ReadKey() {
  while (interrupt_count == 0) {
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0) continue;
    char line[256];
    const ssize_t n = ::read(STDIN_FILENO, line, sizeof line);
    if (n < 0 && errno == EINTR) continue;
    return n > 0 ? line[0] : '\0';
  }
  return '\0';
}

}  // namespace

SignalInterrupts::SignalInterrupts() {
  interrupt_count = 0;
  terminated = false;
  struct sigaction action {};
  action.sa_handler = &OnSignal;  // no SA_RESTART: a question is broken off
  ::sigaction(SIGINT, &action, &old_interrupt);
  ::sigaction(SIGTERM, &action, &old_terminate);
}

SignalInterrupts::~SignalInterrupts() {
  ::sigaction(SIGINT, &old_interrupt, nullptr);
  ::sigaction(SIGTERM, &old_terminate, nullptr);
}

bool SignalInterrupts::Take() { return interrupt_count.exchange(0) > 0; }

Answer SignalInterrupts::Ask() {
  if (terminated || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
    return Answer::kLeave;
  }
  std::cerr << "\nCancel the job? [y = cancel, d = leave it running, Enter = go on following] "
            << std::flush;
  switch (ReadKey()) {
    case 'y':
    case 'Y':
      return Answer::kCancel;
    case 'd':
    case 'D':
      return Answer::kDetach;
    case '\0':
      Take();
      std::cerr << "\n";
      return Answer::kLeave;
    default:
      return Answer::kGoOn;
  }
}

}  // namespace tutti::client

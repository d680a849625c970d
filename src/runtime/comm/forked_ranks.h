// ForkedRanks runs ranks as processes of their own, which tests can kill and stop.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"

namespace tutti::comm {

class ForkedRanks {
 public:
  ForkedRanks() = default;
  ~ForkedRanks() {
    for (const Process& process : processes_) {
      ::kill(process.pid, SIGKILL);
      ::waitpid(process.pid, nullptr, 0);
    }
  }
  ForkedRanks(ForkedRanks&&) = default;

  // Runs `life` in a process of its own, which ends when it returns.
  void Start(const std::function<std::string()>& life) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(static_cast<unsigned>(100 * base::TestPatience()));
      const std::string report = life();
      std::fflush(nullptr);
      const bool written = ::write(ends[1], report.data(), report.size()) >= 0;
      ::_exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    processes_.push_back({pid, base::UniqueFd(ends[0])});
  }

  // Returns what number `i` has returned; empty if it was killed.
  std::string Report(size_t i) {
    std::string report;
    const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(90)));
    char block[4096];
    pollfd polled = {processes_[i].report.get(), POLLIN, 0};
    while (::poll(&polled, 1, deadline.RemainingMillis()) > 0) {
      const ssize_t n = ::read(polled.fd, block, sizeof(block));
      if (n <= 0) return report;
      report.append(block, static_cast<size_t>(n));
    }
    return "it did not end";
  }

  // Waits until number `i` has stopped itself.
  bool AwaitStopped(size_t i) {
    int status = 0;
    return ::waitpid(processes_[i].pid, &status, WUNTRACED) == processes_[i].pid &&
           WIFSTOPPED(status);
  }
  void Signal(size_t i, int number) { ::kill(processes_[i].pid, number); }

 private:
  struct Process {
    pid_t pid;
    base::UniqueFd report;
  };
  std::vector<Process> processes_;
};

}  // namespace tutti::comm

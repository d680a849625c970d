// An eventfd: lets one thread end another's poll(2). Thread-safe.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace tutti::launch {

class Wakeup {
 public:
  Wakeup() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return fd_.get(); }
  void Notify() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(fd_.get(), &one, sizeof one);
  }
  void Clear() {
    uint64_t count;
    [[maybe_unused]] const ssize_t n = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  base::UniqueFd fd_;
};

}  // namespace tutti::launch

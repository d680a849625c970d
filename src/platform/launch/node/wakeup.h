// Wakeup is an eventfd by which one thread ends another's poll(2). Thread-safe.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace tutti::launch {

class Wakeup {
 public:
  // Makes one; ResourceExhausted if this process or the system has no descriptor left.
  static absl::StatusOr<Wakeup> Make() {
    base::UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd.valid()) return base::ErrnoStatus("eventfd");
    return Wakeup(std::move(fd));
  }
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
  explicit Wakeup(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
};

}  // namespace tutti::launch

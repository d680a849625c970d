#include "base/process/closed_in_children.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <utility>

namespace tutti::base {
namespace {

// A service holds its own folder and that of each Slurm compute.
std::array<std::atomic<int>, 64> numbers;  // and one; 0: the place is free

}  // namespace

ClosedInChildren::ClosedInChildren(UniqueFd fd) : fd_(std::move(fd)) {
  if (!fd_.valid()) return;
  for (size_t i = 0; i < numbers.size(); ++i) {
    int none = 0;
    if (!numbers[i].compare_exchange_strong(none, fd_.get() + 1)) continue;
    slot_ = static_cast<int>(i);
    return;
  }
}

ClosedInChildren::ClosedInChildren(ClosedInChildren&& other) noexcept
    : fd_(std::move(other.fd_)), slot_(std::exchange(other.slot_, -1)) {}

ClosedInChildren& ClosedInChildren::operator=(ClosedInChildren&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(slot_, other.slot_);
  return *this;
}

ClosedInChildren::~ClosedInChildren() {
  if (slot_ >= 0) numbers[slot_] = 0;  // before the number is another's
}

void ClosedInChildren::CloseAllInChild() {
  for (const std::atomic<int>& number : numbers) {
    if (const int fd = number - 1; fd >= 0) ::close(fd);
  }
}

}  // namespace tutti::base

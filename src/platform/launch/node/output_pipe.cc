#include "platform/launch/node/output_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/time/clock.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kTail = 16 << 10;

}  // namespace

absl::StatusOr<OutputPipe> OutputPipe::Open(SpoolFile* spool) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::ErrnoStatus("pipe");
  OutputPipe pipe(spool);
  pipe.read_.reset(ends[0]);
  pipe.write_.reset(ends[1]);
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return base::ErrnoStatus("fcntl");
  return pipe;
}

absl::Status OutputPipe::Keep() {
  if (held_.empty()) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(spool_->Append(held_));
  held_.clear();
  return absl::OkStatus();
}

absl::StatusOr<size_t> OutputPipe::Pump(size_t most) {
  TUTTI_RETURN_IF_ERROR(Keep());
  size_t moved = 0;
  char block[kBlock];
  while (open() && moved < most) {
    const ssize_t n = ::read(read_.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      read_.reset();
      break;
    }
    held_.assign(block, static_cast<size_t>(n));
    tail_.append(held_);
    last_read_ = absl::Now();
    if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
    moved += static_cast<size_t>(n);
    TUTTI_RETURN_IF_ERROR(Keep());
  }
  return moved;
}

}  // namespace tutti::launch

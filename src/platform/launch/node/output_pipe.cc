#include "platform/launch/node/output_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/deadline.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

constexpr size_t kBlock = 64 << 10;
constexpr size_t kTail = 16 << 10;
constexpr size_t kMostBeforeTheEnd = 1 << 20;

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

void OutputPipe::Take(absl::string_view bytes) {
  if (keeps_) held_.append(bytes.data(), bytes.size());
  tail_.append(bytes.data(), bytes.size());
  if (tail_.size() > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
}

void OutputPipe::TakeLast() {
  if (!masked_) return;
  std::string shown;
  masked_->Finish(shown);
  Take(shown);
}

void OutputPipe::KeepNoMore() {
  ReadLast(kMostBeforeTheEnd);
  keeps_ = false;
}

size_t OutputPipe::Read() {
  char block[kBlock];
  ssize_t n;
  do {
    n = ::read(read_.get(), block, sizeof block);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return 0;
  at_end_ = n <= 0;
  if (at_end_) {
    TakeLast();
    return 0;
  }
  const absl::string_view bytes(block, static_cast<size_t>(n));
  if (masked_) {
    std::string shown;
    masked_->Push(bytes, shown);
    Take(shown);
  } else {
    Take(bytes);
  }
  last_read_ = base::SteadyNow();
  return static_cast<size_t>(n);
}

absl::StatusOr<size_t> OutputPipe::Pump(size_t most) {
  TUTTI_RETURN_IF_ERROR(Keep());
  size_t moved = 0;
  while (open() && moved < most) {
    const size_t n = at_end_ ? 0 : Read();
    if (at_end_) {
      moved += held_.size();  // of what was held back for secrets
      TUTTI_RETURN_IF_ERROR(Keep());
      read_.reset();
    }
    if (n == 0) break;
    moved += n;
    TUTTI_RETURN_IF_ERROR(Keep());
  }
  return moved;
}

void OutputPipe::ReadLast(size_t most) {
  size_t done = Pump(most).value_or(0);
  while (open() && !at_end_ && done < most) {
    const size_t n = Read();
    if (n == 0) break;
    done += n;
  }
}

}  // namespace tutti::launch

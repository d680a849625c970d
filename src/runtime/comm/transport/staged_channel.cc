#include "runtime/comm/transport/staged_channel.h"

#include <algorithm>
#include <cstring>

#include "base/machine/copy_bytes.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr size_t kBlockBytes = 256 << 10;

}  // namespace

absl::StatusOr<size_t> StagedChannel::TryReceive(std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  if (staged() == 0) return ReceiveInto(bytes);
  const size_t n = std::min(bytes.size(), staged());
  base::CopyBytes(bytes.data(), block_.get() + begin_, n);
  Release(n);
  return n;
}

absl::StatusOr<std::span<const std::byte>> StagedChannel::Peek(size_t least, size_t most) {
  // Not value-initialised: pages that are never used are never touched.
  if (block_ == nullptr) block_.reset(new std::byte[kBlockBytes]);
  if (staged() < least) {
    std::memmove(block_.get(), block_.get() + begin_, staged());
    end_ = staged();
    begin_ = 0;
    TUTTI_ASSIGN_OR_RETURN(const size_t n, ReceiveInto({block_.get() + end_, kBlockBytes - end_}));
    end_ += n;
  }
  if (staged() < least) return std::span<const std::byte>();
  return std::span<const std::byte>(block_.get() + begin_, std::min(staged(), most));
}

void StagedChannel::Release(size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

short StagedChannel::PrepareToSleep(bool to_send, size_t to_receive) {
  if (to_receive > 0 && staged() >= to_receive) return 0;
  return PrepareTransportToSleep(to_send, to_receive > 0);
}

}  // namespace tutti::comm

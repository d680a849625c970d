#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

absl::StatusOr<size_t> Channel::TrySendParts(Parts parts) {
  size_t sent = 0;
  for (const std::span<const std::byte> part : parts) {
    const auto n = TrySend(part);
    if (!n.ok() && sent == 0) return n.status();
    if (!n.ok()) return sent;  // found again by the next call
    sent += *n;
    if (*n < part.size()) break;
  }
  return sent;
}

}  // namespace tutti::comm

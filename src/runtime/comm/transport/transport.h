// Channel carries bytes between two ranks: a duplex, ordered, reliable stream without message
// boundaries, whose two directions are independent. Nothing in it blocks: whoever drives several
// channels at once (collective/links.h) sleeps on their descriptors. All transports pass one
// contract test, channel_test.cc.
//
// Thread-compatible. Errors: Unavailable when the other side has closed; what it had sent before
// can still be received.
#pragma once

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::comm {

class Channel {
 public:
  virtual ~Channel() = default;

  // Takes as many of the bytes as there is room for now; 0 if there is none. The bytes may be
  // changed again at once.
  virtual absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) = 0;

  // Does the same for several parts that follow each other, none of them empty; how many bytes were
  // taken of all together. A transport with a gathering call needs one call and no copy; of parts
  // beyond kMostPartsAtOnce none need be taken.
  using Parts = std::span<const std::span<const std::byte>>;
  static constexpr size_t kMostPartsAtOnce = 16;
  virtual absl::StatusOr<size_t> TrySendParts(Parts parts);

  // A transport that transforms bytes (TLS) or sends them by itself (UCX) may hold some that
  // TrySend has taken and that are not on their way yet. Pushes them; whether none is left. Whoever
  // sends calls it until it says so before turning to anything else, else the other side may wait
  // for them for ever. PrepareToSleep waits for it without being asked.
  virtual absl::StatusOr<bool> Flush() { return true; }

  // Fills as much of `bytes` as has come; 0 if nothing has.
  virtual absl::StatusOr<size_t> TryReceive(std::span<std::byte> bytes) = 0;

  // Returns the next bytes where they lie, without a copy: at least `least`, at most `most`, or
  // none if `least` have not come yet. Valid until Release takes the first of them off the stream.
  // `least` is at most 4096.
  virtual absl::StatusOr<std::span<const std::byte>> Peek(size_t least, size_t most) = 0;
  virtual void Release(size_t bytes) = 0;

  // Returns what to sleep on until something can be sent (`to_send`) or `to_receive` bytes can be
  // received (0: not waited for): poll(2)'s events for fd(), or 0 if that is possible already.
  // Every PrepareToSleep is followed by a Wake, whatever happened in between.
  virtual int fd() const = 0;
  virtual short PrepareToSleep(bool to_send, size_t to_receive) = 0;
  virtual void Wake() = 0;

  // Returns whether a look at the channel costs no system call, so that looking again a few times
  // is cheaper than sleeping.
  virtual bool IsCheapToWatch() const = 0;
};

}  // namespace tutti::comm

// StagedChannel is the base of Channels whose transport delivers bytes only into memory that it is
// given: a socket. TryReceive lets them go straight to where the caller wants them; Peek reads
// ahead into a block that stays in the second-level cache, so that a reduction takes its operand
// from there and the bytes never reach memory.
//
// Invariant: the stream is what lies staged in the block, then what the transport still has. So
// nothing is received past the block while the block holds something.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

class StagedChannel : public Channel {
 public:
  absl::StatusOr<size_t> TryReceive(std::span<std::byte> bytes) final;
  absl::StatusOr<std::span<const std::byte>> Peek(size_t least, size_t most) final;
  void Release(size_t bytes) final;
  short PrepareToSleep(bool to_send, size_t to_receive) final;

 protected:
  // Receives like TryReceive, without the block; `bytes` is not empty.
  virtual absl::StatusOr<size_t> ReceiveInto(std::span<std::byte> bytes) = 0;
  // Does what PrepareToSleep does, when more must come than is staged.
  virtual short PrepareTransportToSleep(bool to_send, bool to_receive) = 0;

 private:
  size_t staged() const { return end_ - begin_; }

  std::unique_ptr<std::byte[]> block_;  // what is staged lies in [begin_, end_)
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace tutti::comm

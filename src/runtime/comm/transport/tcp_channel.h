// A Channel over a connected TCP socket (any stream socket will do).
#pragma once

#include <cstdint>
#include <memory>

#include "base/unique_fd.h"
#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

class TcpChannel final : public Channel {
 public:
  // `socket` is non-blocking and authenticated.
  explicit TcpChannel(base::UniqueFd socket);

  absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) override;
  absl::StatusOr<size_t> TryReceive(std::span<std::byte> bytes) override;
  absl::StatusOr<std::span<const std::byte>> Peek(size_t least, size_t most) override;
  void Release(size_t bytes) override;
  int fd() const override { return socket_.get(); }
  short PrepareToSleep(bool to_send, size_t to_receive) override;
  void Wake() override {}
  bool IsCheapToWatch() const override { return false; }

 private:
  size_t staged() const { return end_ - begin_; }
  absl::StatusOr<size_t> ReceiveInto(std::byte* at, size_t most);

  base::UniqueFd socket_;
  // What Peek has read ahead lies in [begin_, end_) of a block that fits into the second-level
  // cache, so that a reduction reads it from there.
  std::unique_ptr<std::byte[]> block_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace tutti::comm

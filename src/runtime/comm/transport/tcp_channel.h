// TcpChannel is a Channel over a connected TCP socket (any stream socket will do).
#pragma once

#include <memory>

#include "base/unique_fd.h"
#include "runtime/comm/transport/staged_channel.h"

namespace tutti::comm {

class TcpChannel final : public StagedChannel {
 public:
  // `socket` is non-blocking and authenticated.
  explicit TcpChannel(base::UniqueFd socket) : socket_(std::move(socket)) {}

  absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) override;
  absl::StatusOr<size_t> TrySendParts(Parts parts) override;
  int fd() const override { return socket_.get(); }
  void Wake() override {}
  bool IsCheapToWatch() const override { return false; }

 protected:
  absl::StatusOr<size_t> ReceiveInto(std::span<std::byte> bytes) override;
  short PrepareTransportToSleep(bool to_send, bool to_receive) override;

 private:
  base::UniqueFd socket_;
};

}  // namespace tutti::comm

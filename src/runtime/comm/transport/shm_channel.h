// ShmChannel is a Channel through shared memory, for two processes of one host: two byte rings, one
// for each direction, in an anonymous memory file that the opener makes and hands over through a
// Unix socket. Nothing has a name in the file system, so nothing is left behind by a crash and no
// limit on /dev/shm matters.
//
// The socket stays. A side that sleeps does so on it, and is woken by one byte from the other side
// (only then: two busy ranks make no system call). And it closes when the other process ends,
// however that happens, so that a sleeper hears of it at once.
#pragma once

#include <cstdint>
#include <memory>

#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/transport/byte_ring.h"
#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

class ShmChannel final : public Channel {
 public:
  static constexpr size_t kRingBytes = 512 << 10;

  // Makes a channel over an authenticated Unix socket. The opener makes the memory, the listener
  // takes it.
  static absl::StatusOr<std::unique_ptr<Channel>> Make(base::UniqueFd socket, Side side,
                                                       const Patience& patience);
  ~ShmChannel() override;

  absl::StatusOr<size_t> TrySend(std::span<const std::byte> bytes) override;
  absl::StatusOr<size_t> TryReceive(std::span<std::byte> bytes) override;
  absl::StatusOr<std::span<const std::byte>> Peek(size_t least, size_t most) override;
  void Release(size_t bytes) override;
  int fd() const override { return socket_.get(); }
  short PrepareToSleep(bool to_send, size_t to_receive) override;
  void Wake() override;
  bool IsCheapToWatch() const override { return true; }

 private:
  ShmChannel(base::UniqueFd socket, std::byte* memory, Side side);
  void RingDoorbell();

  base::UniqueFd socket_;
  std::byte* const memory_;
  ByteRingWriter writer_;
  ByteRingReader reader_;
  bool sleeping_ = false;
  bool closed_ = false;
};

}  // namespace tutti::comm

// What a peer sends while a channel is set up, and after: any bytes end in an error or a channel,
// never in a crash, a hang or a read outside of memory. Likewise what it does to the memory of a
// ring, and what it sends in place of TLS's records once the handshake is done. (Messages before
// that: control_message_fuzz.cc. The address of a UCX worker is read by UCX itself, and taken from
// peers alone that know the token.)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/comm/rendezvous/wire/descriptors.h"
#include "runtime/comm/transport/shm_channel.h"
#include "runtime/comm/transport/tcp_channel.h"
#include "runtime/comm/transport/tls_channel.h"

namespace {

using tutti::base::UniqueFd;
using tutti::comm::Channel;
using tutti::comm::ShmChannel;
using tutti::comm::Side;
using tutti::comm::TlsChannel;
using Made = absl::StatusOr<std::unique_ptr<Channel>>;

constexpr size_t kFileBytes = 4096 + 2 * ShmChannel::kRingBytes;

struct Bytes {
  const uint8_t* data;
  size_t size;

  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    const size_t n = std::min(bytes, size);
    std::memcpy(&number, data, n);
    data += n;
    size -= n;
    return number;
  }
};

tutti::comm::Patience Brief() { return {tutti::base::Deadline::After(absl::Seconds(1))}; }

void SendTo(int socket, Bytes bytes) {
  [[maybe_unused]] const ssize_t n = ::send(socket, bytes.data, bytes.size, MSG_NOSIGNAL);
}

void ReceiveAll(Channel& channel) {
  std::array<std::byte, 4096> bytes;
  while (true) {
    const auto received = channel.TryReceive(bytes);
    if (!received.ok() || *received == 0) return;
  }
}

void SetUp(uint8_t kind, UniqueFd own, const UniqueFd& peer, Bytes bytes) {
  SendTo(peer.get(), bytes);
  ::shutdown(peer.get(), SHUT_WR);
  Made channel = std::make_unique<tutti::comm::TcpChannel>(UniqueFd());
  if (kind == 0) channel = TlsChannel::Make(std::move(own), Side::kOpener, "token", Brief());
  if (kind == 1) channel = TlsChannel::Make(std::move(own), Side::kListener, "token", Brief());
  if (kind == 2) channel = ShmChannel::Make(std::move(own), Side::kListener, Brief());
  if (kind == 3) channel = std::make_unique<tutti::comm::TcpChannel>(std::move(own));
  if (channel.ok()) ReceiveAll(**channel);
}

// Records after a handshake that was in order.
void AfterHandshake(UniqueFd own, UniqueFd peer, Bytes bytes) {
  const int wire = peer.get();
  Made other = absl::UnknownError("");
  std::thread opener(
      [&] { other = TlsChannel::Make(std::move(peer), Side::kOpener, "token", Brief()); });
  Made channel = TlsChannel::Make(std::move(own), Side::kListener, "token", Brief());
  opener.join();
  if (!channel.ok() || !other.ok()) return;
  const size_t genuine = bytes.Number(1);
  const std::array<std::byte, 256> data = {};
  if (!(*other)->TrySend({data.data(), genuine}).ok()) std::abort();
  SendTo(wire, bytes);
  ::shutdown(wire, SHUT_WR);
  ReceiveAll(**channel);
  (*channel)->TrySend(data).IgnoreError();
}

// A file that is, or could be, a channel's memory, mapped here too.
uint64_t* SendMemory(int socket, uint8_t how) {
  UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(file.get(), how & 1 ? 4096 : kFileBytes) != 0) std::abort();
  if ((how & 2) == 0) ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  if (!tutti::comm::SendDescriptor(socket, file.get(), Brief()).ok()) std::abort();
  void* const states = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (states == MAP_FAILED) std::abort();
  return static_cast<uint64_t*>(states);
}

// One thing that this side does with its channel; `scratch` has room for two rings.
void Use(Channel& channel, uint64_t what, size_t bytes, std::byte* scratch) {
  bytes %= 2 * ShmChannel::kRingBytes;
  if (what % 4 == 0) channel.TrySend({scratch, bytes}).IgnoreError();
  if (what % 4 == 1) channel.TryReceive({scratch, bytes}).IgnoreError();
  if (what % 4 == 2) {
    const auto come = channel.Peek(std::min<size_t>(bytes, 64), bytes);
    if (!come.ok()) return;
    std::copy(come->begin(), come->end(), scratch);
    channel.Release(come->size() / 2);
  }
  if (what % 4 == 3) {
    channel.PrepareToSleep(bytes & 1, bytes & 2 ? 1 : 0);
    channel.Wake();
  }
}

// A peer that writes what it likes into the states of the rings, at any time.
void SharedMemory(UniqueFd own, const UniqueFd& peer, Bytes bytes) {
  static std::vector<std::byte> scratch(2 * ShmChannel::kRingBytes);
  uint64_t* const states = SendMemory(peer.get(), static_cast<uint8_t>(bytes.Number(1)));
  const Made channel = ShmChannel::Make(std::move(own), Side::kListener, Brief());
  while (channel.ok() && bytes.size > 0) {
    const uint64_t what = bytes.Number(1);
    const size_t word = what >> 3 & 31;  // of the two states
    if (what & 4) {
      states[word] = bytes.Number(8);
    } else {
      Use(**channel, what, bytes.Number(3), scratch.data());
    }
  }
  ::munmap(states, 4096);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int ends[2];
  if (size == 0 ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    return 0;
  }
  UniqueFd own(ends[0]), peer(ends[1]);
  const uint8_t kind = data[0] % 6;
  const Bytes bytes = {data + 1, size - 1};
  if (kind < 4) SetUp(kind, std::move(own), peer, bytes);
  if (kind == 4) AfterHandshake(std::move(own), std::move(peer), bytes);
  if (kind == 5) SharedMemory(std::move(own), peer, bytes);
  return 0;
}

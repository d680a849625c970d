#include "runtime/comm/transport/shm_channel.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/machine/copy_bytes.h"
#include "base/status.h"
#include "runtime/comm/rendezvous/wire/descriptors.h"
#include "runtime/comm/transport/sealed_file.h"

namespace tutti::comm {
namespace {

using base::ErrnoStatus;
using base::UniqueFd;

constexpr size_t kRing = ShmChannel::kRingBytes;
// Parts of the file are mapped apart, at multiples of a page: of up to 64 KiB on aarch64.
#if defined(__aarch64__)
constexpr size_t kStateBytes = 64 << 10;
#else
constexpr size_t kStateBytes = 4096;
#endif
static_assert(kRing % kStateBytes == 0);
// In the file: the states of both rings, the bytes of ring 0 (opener to listener), those of ring 1.
constexpr size_t kFileBytes = kStateBytes + 2 * kRing;
// In memory: the states, ring 0 twice, ring 1 twice.
constexpr size_t kMappedBytes = kStateBytes + 4 * kRing;
static_assert(2 * sizeof(ByteRingState) <= kStateBytes);

bool MapPart(int file, std::byte* at, size_t bytes, size_t offset) {
  return ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                static_cast<off_t>(offset)) != MAP_FAILED;
}

absl::StatusOr<std::byte*> Map(int file) {
  void* place = ::mmap(nullptr, kMappedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return ErrnoStatus("mmap");
  std::byte* const memory = static_cast<std::byte*>(place);
  bool mapped = MapPart(file, memory, kStateBytes, 0);
  for (size_t copy = 0; copy < 4; ++copy) {
    mapped = mapped && MapPart(file, memory + kStateBytes + copy * kRing, kRing,
                               kStateBytes + copy / 2 * kRing);
  }
  if (mapped) return memory;
  const absl::Status error = ErrnoStatus("mmap shared memory");
  ::munmap(memory, kMappedBytes);
  return error;
}

// The state and the bytes of ring 0 or 1. A fresh file's zeros are the empty ring.
ByteRingState* State(std::byte* memory, int ring) {
  return reinterpret_cast<ByteRingState*>(memory) + ring;
}
std::byte* Data(std::byte* memory, int ring) { return memory + kStateBytes + ring * 2 * kRing; }

}  // namespace

absl::StatusOr<std::unique_ptr<Channel>> ShmChannel::Make(UniqueFd socket, Side side,
                                                          const Patience& patience) {
  UniqueFd file;
  if (side == Side::kOpener) {
    TUTTI_ASSIGN_OR_RETURN(file, MakeSealedFile("tutti-channel", kFileBytes));
    TUTTI_RETURN_IF_ERROR(SendDescriptor(socket.get(), file.get(), patience));
  } else {
    TUTTI_ASSIGN_OR_RETURN(file, ReceiveDescriptor(socket.get(), patience));
    TUTTI_RETURN_IF_ERROR(CheckSealedFile(file.get(), kFileBytes));
  }
  TUTTI_ASSIGN_OR_RETURN(std::byte* const memory, Map(file.get()));
  return std::unique_ptr<Channel>(new ShmChannel(std::move(socket), memory, side));
}

ShmChannel::ShmChannel(UniqueFd socket, std::byte* memory, Side side)
    : socket_(std::move(socket)),
      memory_(memory),
      writer_(State(memory, side == Side::kOpener ? 0 : 1),
              Data(memory, side == Side::kOpener ? 0 : 1), kRing),
      reader_(State(memory, side == Side::kOpener ? 1 : 0),
              Data(memory, side == Side::kOpener ? 1 : 0), kRing) {}

ShmChannel::~ShmChannel() { ::munmap(memory_, kMappedBytes); }

void ShmChannel::RingDoorbell() {
  const char byte = 0;
  // A full socket has enough bytes in it to wake the other side; a closed one is found by Wake.
  [[maybe_unused]] const ssize_t n = ::send(fd(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

absl::StatusOr<size_t> ShmChannel::TrySend(std::span<const std::byte> bytes) {
  if (closed_) return ConnectionClosed();
  TUTTI_ASSIGN_OR_RETURN(const size_t n, writer_.Write(bytes));
  if (n > 0 && writer_.TakeWake()) RingDoorbell();
  return n;
}

absl::StatusOr<std::span<const std::byte>> ShmChannel::Peek(size_t least, size_t most) {
  // Before the ring is read: what was written before the close is then seen.
  const bool closed = closed_;
  TUTTI_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, reader_.Readable(least));
  if (bytes.size() >= least) return bytes.first(std::min(bytes.size(), most));
  if (closed) return ConnectionClosed();
  return std::span<const std::byte>();
}

void ShmChannel::Release(size_t bytes) {
  if (bytes == 0) return;
  reader_.Release(bytes);
  if (reader_.TakeWake()) RingDoorbell();
}

absl::StatusOr<size_t> ShmChannel::TryReceive(std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  TUTTI_ASSIGN_OR_RETURN(const std::span<const std::byte> come, Peek(1, bytes.size()));
  if (come.empty()) return 0;
  base::CopyBytes(bytes.data(), come.data(), come.size());
  Release(come.size());
  return come.size();
}

short ShmChannel::PrepareToSleep(bool to_send, size_t to_receive) {
  sleeping_ = true;
  if (closed_) return 0;
  if (to_send && !writer_.PrepareToSleep()) return 0;
  if (to_receive > 0 && !reader_.PrepareToSleep(to_receive)) return 0;
  return POLLIN;
}

void ShmChannel::Wake() {
  if (!std::exchange(sleeping_, false)) return;
  writer_.Wake();
  reader_.Wake();
  char bytes[64];
  while (true) {
    const ssize_t n = ::recv(fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n == 0 || errno != EAGAIN) closed_ = true;
    return;
  }
}

}  // namespace tutti::comm

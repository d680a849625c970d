#include "runtime/comm/transport/byte_ring.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"

namespace tutti::comm {
namespace {

absl::Status Nonsense() { return absl::DataLossError("the shared ring's counters make no sense"); }

}  // namespace

ByteRingWriter::ByteRingWriter(ByteRingState* state, std::byte* data, size_t capacity)
    : state_(state), data_(data), capacity_(capacity) {}

absl::StatusOr<size_t> ByteRingWriter::Write(std::span<const std::byte> bytes) {
  // The reader's counter is read only when the last look does not suffice: its cache line stays
  // with the reader meanwhile.
  if (capacity_ - (written_ - read_) < bytes.size()) {
    read_ = state_->read.load(std::memory_order_acquire);
    if (written_ - read_ > capacity_) return Nonsense();
  }
  const size_t n = std::min<size_t>(bytes.size(), capacity_ - (written_ - read_));
  if (n == 0) return 0;
  std::memcpy(data_ + written_ % capacity_, bytes.data(), n);
  written_ += n;
  state_->written.store(written_, std::memory_order_seq_cst);
  return n;
}

bool ByteRingWriter::TakeWake() {
  return state_->reader_sleeps.load(std::memory_order_seq_cst) != 0 &&
         state_->reader_sleeps.exchange(0, std::memory_order_relaxed) != 0;
}

bool ByteRingWriter::PrepareToSleep() {
  state_->writer_sleeps.store(1, std::memory_order_seq_cst);
  if (written_ - state_->read.load(std::memory_order_seq_cst) == capacity_) return true;
  Wake();
  return false;
}

ByteRingReader::ByteRingReader(ByteRingState* state, const std::byte* data, size_t capacity)
    : state_(state), data_(data), capacity_(capacity) {}

absl::StatusOr<std::span<const std::byte>> ByteRingReader::Readable(size_t wanted) {
  if (written_ - read_ < wanted) {
    written_ = state_->written.load(std::memory_order_acquire);
    if (written_ - read_ > capacity_) return Nonsense();
  }
  return std::span<const std::byte>(data_ + read_ % capacity_, written_ - read_);
}

void ByteRingReader::Release(size_t bytes) {
  read_ += bytes;
  state_->read.store(read_, std::memory_order_seq_cst);
}

bool ByteRingReader::TakeWake() {
  return state_->writer_sleeps.load(std::memory_order_seq_cst) != 0 &&
         state_->writer_sleeps.exchange(0, std::memory_order_relaxed) != 0;
}

bool ByteRingReader::PrepareToSleep(size_t wanted) {
  state_->reader_sleeps.store(1, std::memory_order_seq_cst);
  if (state_->written.load(std::memory_order_seq_cst) - read_ < wanted) return true;
  Wake();
  return false;
}

}  // namespace tutti::comm

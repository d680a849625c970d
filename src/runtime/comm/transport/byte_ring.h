// ByteRingWriter and ByteRingReader share a ring of bytes in memory between two processes: one
// writes, one reads, and neither ever takes a lock.
//
// The state holds two counters that only grow: `written`, stored by the writer alone, and `read`,
// stored by the reader alone. The bytes [read, written) are in the ring, and
// written - read <= capacity always. The writer fills free bytes first and then stores `written`
// with release; the reader loads `written` with acquire, so it sees every byte below it: no torn
// value. The other way round `read` gives the space back.
//
// Sleeping. A side that has nothing to do stores its `sleeps` flag and then looks at the other's
// counter once more; the other side stores its counter and then looks at the flag. All four are
// sequentially consistent, so of two such pairs at least one sees the other's store: either the
// sleeper sees the bytes and does not sleep, or the other sees the flag and wakes it. No wake is
// lost.
//
// The atomics are a parameter so that byte_ring_model_test.cc can run this very code through all
// that C++'s memory model allows. It also shows that no order here is stronger than needed.
//
// The data is mapped twice, one copy right behind the other, so that a piece that goes round the
// end is contiguous all the same.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/status/statusor.h"
#include "base/machine/copy_bytes.h"

namespace tutti::comm {

// Shared between processes: fixed layout, lock-free atomics, zero is the empty ring. The two sides
// write to cache lines of their own.
template <template <typename> class Atomic>
struct ByteRingStateOf {
  alignas(64) Atomic<uint64_t> written;
  Atomic<uint32_t> writer_sleeps;
  alignas(64) Atomic<uint64_t> read;
  Atomic<uint32_t> reader_sleeps;
};
using ByteRingState = ByteRingStateOf<std::atomic>;
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// What both sides do with the flag of the other.
template <template <typename> class Atomic>
bool TakeFlag(Atomic<uint32_t>& sleeps) {
  return sleeps.load(std::memory_order_seq_cst) != 0 &&
         sleeps.exchange(0, std::memory_order_relaxed) != 0;
}

absl::Status ByteRingNonsense();

// How bytes come into the ring. A model's notes the access.
template <template <typename> class Atomic>
struct RingBytes {
  static void Copy(std::byte* to, std::span<const std::byte> from) {
    base::CopyBytes(to, from.data(), from.size());
  }
};

template <template <typename> class Atomic>
class ByteRingWriterOf {
 public:
  using State = ByteRingStateOf<Atomic>;

  // `data` has 2 * capacity bytes, the second half a mapping of the first.
  ByteRingWriterOf(State* state, std::byte* data, size_t capacity)
      : state_(state), data_(data), capacity_(capacity) {}

  // Returns how many of the bytes fitted. DataLoss if the reader's counter makes no sense.
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes) {
    // The reader's counter is read only when the last look does not suffice: its cache line stays
    // with the reader meanwhile.
    if (capacity_ - (written_ - read_) < bytes.size()) {
      const uint64_t read = state_->read.load(std::memory_order_acquire);
      if (written_ - read > capacity_) return ByteRingNonsense();
      read_ = read;
    }
    const size_t n = std::min<size_t>(bytes.size(), capacity_ - (written_ - read_));
    if (n == 0) return 0;
    RingBytes<Atomic>::Copy(data_ + written_ % capacity_, bytes.first(n));
    written_ += n;
    state_->written.store(written_, std::memory_order_seq_cst);
    return n;
  }

  // Returns true when the reader slept and has to be woken; clears its flag.
  bool TakeWake() { return TakeFlag<Atomic>(state_->reader_sleeps); }

  // Marks this side as asleep; false if there is room (and it is not marked).
  bool PrepareToSleep() {
    state_->writer_sleeps.store(1, std::memory_order_seq_cst);
    if (written_ - state_->read.load(std::memory_order_seq_cst) == capacity_) return true;
    Wake();
    return false;
  }
  void Wake() { state_->writer_sleeps.store(0, std::memory_order_relaxed); }

 private:
  State* const state_;
  std::byte* const data_;
  const size_t capacity_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;  // as last seen
};

template <template <typename> class Atomic>
class ByteRingReaderOf {
 public:
  using State = ByteRingStateOf<Atomic>;

  ByteRingReaderOf(State* state, const std::byte* data, size_t capacity)
      : state_(state), data_(data), capacity_(capacity) {}

  // Returns all that has come. DataLoss if the writer's counter makes no sense.
  absl::StatusOr<std::span<const std::byte>> Readable(size_t wanted) {
    if (written_ - read_ < wanted) {
      const uint64_t written = state_->written.load(std::memory_order_acquire);
      if (written - read_ > capacity_) return ByteRingNonsense();
      written_ = written;
    }
    return std::span<const std::byte>(data_ + read_ % capacity_, written_ - read_);
  }
  void Release(size_t bytes) {
    read_ += bytes;
    state_->read.store(read_, std::memory_order_seq_cst);
  }

  bool TakeWake() { return TakeFlag<Atomic>(state_->writer_sleeps); }

  // Does for the reader what the writer's function does; false if at least `wanted` bytes are
  // there.
  bool PrepareToSleep(size_t wanted) {
    state_->reader_sleeps.store(1, std::memory_order_seq_cst);
    if (state_->written.load(std::memory_order_seq_cst) - read_ < wanted) return true;
    Wake();
    return false;
  }
  void Wake() { state_->reader_sleeps.store(0, std::memory_order_relaxed); }

 private:
  State* const state_;
  const std::byte* const data_;
  const size_t capacity_;
  uint64_t read_ = 0;
  uint64_t written_ = 0;  // as last seen
};

using ByteRingWriter = ByteRingWriterOf<std::atomic>;
using ByteRingReader = ByteRingReaderOf<std::atomic>;

}  // namespace tutti::comm

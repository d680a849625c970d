// A ring of bytes in memory that two processes share: one writes, one reads, and neither ever takes
// a lock.
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
// sleeper sees the bytes and does not sleep, or the other sees the flag and rings. No wake is lost.
//
// The data is mapped twice, one copy right behind the other, so that a piece that goes round the
// end is contiguous all the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace tutti::comm {

// Shared between processes: fixed layout, lock-free atomics, zero is the empty ring. The two sides
// write to cache lines of their own.
struct ByteRingState {
  alignas(64) std::atomic<uint64_t> written;
  std::atomic<uint32_t> writer_sleeps;
  alignas(64) std::atomic<uint64_t> read;
  std::atomic<uint32_t> reader_sleeps;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class ByteRingWriter {
 public:
  // `data` has 2 * capacity bytes, the second half a mapping of the first.
  ByteRingWriter(ByteRingState* state, std::byte* data, size_t capacity);
  // How many of the bytes fitted. DataLoss if the reader's counter makes no sense.
  absl::StatusOr<size_t> Write(std::span<const std::byte> bytes);
  // True when the reader slept and has to be woken; clears its flag.
  bool TakeWake();
  // Marks this side as asleep; false if there is room (and it is not marked).
  bool PrepareToSleep();
  void Wake() { state_->writer_sleeps.store(0, std::memory_order_relaxed); }

 private:
  ByteRingState* const state_;
  std::byte* const data_;
  const size_t capacity_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;  // as last seen
};

class ByteRingReader {
 public:
  ByteRingReader(ByteRingState* state, const std::byte* data, size_t capacity);
  // All that has come. DataLoss if the writer's counter makes no sense.
  absl::StatusOr<std::span<const std::byte>> Readable(size_t wanted);
  void Release(size_t bytes);
  bool TakeWake();
  // As above; false if at least `wanted` bytes are there.
  bool PrepareToSleep(size_t wanted);
  void Wake() { state_->reader_sleeps.store(0, std::memory_order_relaxed); }

 private:
  ByteRingState* const state_;
  const std::byte* const data_;
  const size_t capacity_;
  uint64_t read_ = 0;
  uint64_t written_ = 0;  // as last seen
};

}  // namespace tutti::comm

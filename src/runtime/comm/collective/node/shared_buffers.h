// SharedBuffers allocates memory of a rank that the other ranks of its node reach directly, so that
// a collective on it needs no copy in between.
//
// Who allocates a buffer sends its file to each of the others, into a letterbox: a socket whose
// other end all of them can write to. A letter lies there until its reader first hears of a buffer
// that it does not know; it has then come, because it was sent before. So allocating waits for
// nobody. A buffer that could not be announced to all (a letterbox was full) is plain memory.
//
// When a buffer goes its pages are given back at once, whatever others have mapped, and a letter
// tells them to unmap it.
//
// No rank writes into a buffer when nobody awaits it. Another rank writes there in a collective on
// it alone, between two phases, the second of which the owner awaits in the same call: after a call
// that has succeeded nobody writes any more. A call that has failed leaves ranks behind that may
// yet write, at any time (one that was stopped goes on). So before it returns, Detach puts private
// pages with the same content in place of all of this rank's buffers: a late write reaches the
// file, which nobody reads any more. All of them, since a rank can be ahead of what this one knows
// of a buffer. Other threads may write into buffers meanwhile, and no such write is lost: the new
// pages are a private view of the same file, which each takes the content over when it is first
// written to, and the kernel orders that with every other write through this view.
//
// SharedBuffers is thread-compatible; the buffers that it has given out may go at any time, on any
// thread, and may outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/collective/node/segment.h"
#include "runtime/comm/shared_buffer.h"

namespace tutti::comm {

// Where data lies, as told to the others through shared memory. What a peer writes there is
// checked.
struct BufferLocation {
  uint64_t buffer = 0;  // 0: in memory that cannot be reached
  uint64_t offset = 0;
  uint64_t is_new = 0;  // not all have mapped the buffer yet
};

class SharedBuffers {
 public:
  // `letterboxes[r]` leads to rank r's, `letters` is what has come into this rank's own.
  SharedBuffers(int self, std::vector<base::UniqueFd> letterboxes, base::UniqueFd letters);
  ~SharedBuffers();

  absl::StatusOr<std::unique_ptr<SharedBuffer>> Allocate(size_t bytes);

  // Returns where data of this rank lies.
  BufferLocation Find(const std::byte* data, size_t bytes) const;
  bool Has(std::span<const std::byte> data) const {
    return Find(data.data(), data.size()).buffer != 0;
  }
  // Notes that all have mapped it, or somebody could not: then it is plain memory from now on.
  void SetReached(const BufferLocation& own, bool by_all);

  // Makes all that was and will be allocated plain memory, which no other rank can write into.
  void Detach();

  // Returns a peer's data, mapped here if that is new. NotFound if it cannot be mapped, DataLoss if
  // it would not lie inside of the buffer. Valid until Tidy.
  absl::StatusOr<std::byte*> Map(int peer, const BufferLocation& where, size_t bytes);
  // Unmaps what peers have given up.
  void Tidy();

 private:
  class Own;
  class Allocation;

  void ReadLetters();

  const base::UniqueFd letters_;
  std::vector<std::map<uint64_t, Segment>> mapped_;  // by rank and number
  std::vector<std::pair<int, uint64_t>> given_up_;
  const std::shared_ptr<Own> own_;
};

}  // namespace tutti::comm

#include "runtime/comm/collective/ring.h"

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "runtime/comm/collective/chunks.h"

namespace tutti::comm {
namespace {

constexpr size_t kRingBlock = 128 << 10;  // taken at once: stays in the second-level cache

// A place in the stream of pieces of one direction. Piece k is chunk rank - k - shift.
struct RingCursor {
  int shift;
  int piece = 0;
  size_t offset = 0;
};

class RingFlow final : public Flow {
 public:
  // The first `reduced` of `pieces` are added by `reduction`.
  RingFlow(int rank, const Chunks& chunks, int pieces, int reduced, const Reduction* reduction)
      : rank_(rank),
        size_(chunks.count()),
        chunks_(chunks),
        pieces_(pieces),
        reduced_(reduced),
        reduction_(reduction),
        width_(reduction == nullptr ? 1 : SizeOf(reduction->type)) {
    Advance(sent_, 0);
    Advance(taken_, 0);
  }

  std::span<const std::byte> Outgoing() override { return Ready(sent_); }

  size_t OutgoingParts(std::span<std::span<const std::byte>> parts) override {
    size_t used = 0;
    for (RingCursor next = sent_; used < parts.size(); ++used) {
      parts[used] = Ready(next);
      if (parts[used].empty()) break;
      Advance(next, parts[used].size());
    }
    return used;
  }

  void Sent(size_t bytes) override { Advance(sent_, bytes); }

  size_t MinIncoming() override {
    if (taken_.piece == pieces_) return 0;
    return taken_.piece < reduced_ ? width_ : 1;
  }

  absl::StatusOr<size_t> Take(Channel& from) override {
    const std::span<std::byte> rest = Piece(taken_).subspan(taken_.offset);
    const std::span<std::byte> block = rest.first(std::min(rest.size(), kRingBlock));
    size_t n = 0;
    if (taken_.piece < reduced_) {
      TUTTI_ASSIGN_OR_RETURN(n, Add(from, block));
    } else {
      TUTTI_ASSIGN_OR_RETURN(n, from.TryReceive(block));
    }
    Advance(taken_, n);
    return n;
  }

  bool Done() const override { return sent_.piece == pieces_ && taken_.piece == pieces_; }

 private:
  // What may leave of the piece at `cursor`.
  std::span<const std::byte> Ready(const RingCursor& cursor) const {
    if (cursor.piece == pieces_) return {};
    const std::span<std::byte> piece = Piece(cursor);
    size_t ready = piece.size();
    if (cursor.piece > taken_.piece) ready = cursor.piece - 1 == taken_.piece ? taken_.offset : 0;
    return ready <= cursor.offset ? std::span<const std::byte>()
                                  : piece.first(ready).subspan(cursor.offset);
  }

  std::span<std::byte> Piece(const RingCursor& cursor) const {
    return chunks_[(rank_ + 2 * size_ - cursor.piece - cursor.shift) % size_];
  }

  // Whole elements, straight from where they lie.
  absl::StatusOr<size_t> Add(Channel& from, std::span<std::byte> block) {
    TUTTI_ASSIGN_OR_RETURN(const std::span<const std::byte> come, from.Peek(width_, block.size()));
    const size_t elements = come.size() / width_;
    reduction_->Apply(block.data(), come.data(), elements, taken_.piece == reduced_ - 1);
    from.Release(elements * width_);
    return elements * width_;
  }

  // Past `bytes`, and past pieces that are complete (or empty: more ranks than cache lines).
  void Advance(RingCursor& cursor, size_t bytes) const {
    cursor.offset += bytes;
    while (cursor.piece < pieces_ && cursor.offset >= Piece(cursor).size()) {
      cursor.offset -= Piece(cursor).size();
      ++cursor.piece;
    }
  }

  const int rank_;
  const int size_;
  const Chunks& chunks_;
  const int pieces_;
  const int reduced_;
  const Reduction* const reduction_;
  const size_t width_;
  RingCursor sent_ = {.shift = 0};
  RingCursor taken_ = {.shift = 1};
};

class ChainFlow final : public Flow {
 public:
  ChainFlow(std::span<std::byte> data, bool receives, bool sends)
      : data_(data), sent_(sends ? 0 : data.size()), taken_(receives ? 0 : data.size()) {}

  std::span<const std::byte> Outgoing() override {
    if (sent_ >= taken_) return {};
    return data_.subspan(sent_, taken_ - sent_);
  }
  void Sent(size_t bytes) override { sent_ += bytes; }
  size_t MinIncoming() override { return taken_ < data_.size() ? 1 : 0; }
  absl::StatusOr<size_t> Take(Channel& from) override {
    TUTTI_ASSIGN_OR_RETURN(const size_t n, from.TryReceive(data_.subspan(taken_)));
    taken_ += n;
    return n;
  }
  bool Done() const override { return sent_ == data_.size() && taken_ == data_.size(); }

 private:
  std::span<std::byte> data_;
  size_t sent_;
  size_t taken_;
};

}  // namespace

absl::Status RingAllReduce(Links& links, std::byte* data, size_t count, const Reduction& reduction,
                           base::Deadline deadline) {
  const int n = links.size();
  const Chunks chunks = Chunks::Even(data, count, SizeOf(reduction.type), n);
  RingFlow flow(links.rank(), chunks, 2 * n - 2, n - 1, &reduction);
  return links.Move(flow, links.Right(), links.Left(), deadline);
}

absl::Status RingAllGather(Links& links, const Chunks& output, base::Deadline deadline) {
  RingFlow flow(links.rank(), output, links.size() - 1, 0, nullptr);
  return links.Move(flow, links.Right(), links.Left(), deadline);
}

absl::Status ChainBroadcast(Links& links, std::span<std::byte> data, int root,
                            base::Deadline deadline) {
  const int size = links.size();
  const int place = (links.rank() - root + size) % size;
  const bool receives = place != 0;
  const bool sends = place + 1 < size;
  ChainFlow flow(data, receives, sends);
  return links.Move(flow, sends ? links.Right() : -1, receives ? links.Left() : -1, deadline);
}

}  // namespace tutti::comm

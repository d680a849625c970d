#include "runtime/comm/collective/reduce_scatter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "base/status.h"
#include "runtime/comm/collective/chunks.h"

namespace tutti::comm {
namespace {

constexpr size_t kScatterBlock = 64 << 10;  // reduced at once: from the cache into the cache

struct ScatterCursor {
  int piece = 0;
  size_t offset = 0;
};

class ReduceScatterFlow final : public Flow {
 public:
  // `input` is only read.
  ReduceScatterFlow(int rank, const Chunks& input, std::byte* output, const Reduction& reduction)
      : rank_(rank),
        size_(input.count()),
        pieces_(size_ - 1),
        input_(input),
        output_(output),
        reduction_(reduction),
        width_(SizeOf(reduction.type)) {
    for (int r = 0; r < size_; ++r) longest_ = std::max(longest_, input[r].size());
    if (pieces_ > 1) scratch_ = std::make_unique_for_overwrite<std::byte[]>(2 * longest_);
    Advance(sent_, 1, 0);
    Advance(taken_, 2, 0);
  }

  std::span<const std::byte> Outgoing() override {
    if (sent_.piece == pieces_) return {};
    const std::span<const std::byte> chunk = Chunk(sent_.piece, 1);
    if (sent_.piece == 0) return chunk.subspan(sent_.offset);
    size_t ready = chunk.size();
    if (sent_.piece > taken_.piece) ready = sent_.piece - 1 == taken_.piece ? taken_.offset : 0;
    return {Block(sent_.piece - 1) + sent_.offset, ready - sent_.offset};
  }

  void Sent(size_t bytes) override { Advance(sent_, 1, bytes); }

  size_t MinIncoming() override {
    const bool is_free = taken_.piece < 2 || sent_.piece >= taken_.piece;
    return taken_.piece < pieces_ && is_free ? width_ : 0;
  }

  absl::StatusOr<size_t> Take(Channel& from) override {
    const std::span<const std::byte> own = Chunk(taken_.piece, 2).subspan(taken_.offset);
    const bool last = taken_.piece == pieces_ - 1;
    std::byte* const sum = (last ? output_ : Block(taken_.piece)) + taken_.offset;
    TUTTI_ASSIGN_OR_RETURN(const std::span<const std::byte> come,
                           from.Peek(width_, std::min(own.size(), kScatterBlock)));
    const size_t elements = come.size() / width_;
    const size_t bytes = elements * width_;
    if (sum != own.data() && bytes > 0) std::memcpy(sum, own.data(), bytes);
    reduction_.Apply(sum, come.data(), elements, last);
    from.Release(bytes);
    Advance(taken_, 2, bytes);
    return bytes;
  }

  bool Done() const override { return sent_.piece == pieces_ && taken_.piece == pieces_; }

 private:
  std::span<const std::byte> Chunk(int piece, int shift) const {
    return input_[(rank_ + 2 * size_ - piece - shift) % size_];
  }
  std::byte* Block(int piece) const { return scratch_.get() + (piece % 2) * longest_; }

  // Past `bytes`, and past pieces that are complete or empty.
  void Advance(ScatterCursor& cursor, int shift, size_t bytes) const {
    cursor.offset += bytes;
    while (cursor.piece < pieces_ && cursor.offset == Chunk(cursor.piece, shift).size()) {
      ++cursor.piece;
      cursor.offset = 0;
    }
  }

  const int rank_;
  const int size_;
  const int pieces_;
  const Chunks& input_;
  std::byte* const output_;
  const Reduction& reduction_;
  const size_t width_;
  size_t longest_ = 0;
  std::unique_ptr<std::byte[]> scratch_;
  ScatterCursor sent_;
  ScatterCursor taken_;
};

// What remains to be reduced, in memory of its own: all chunks of the ranks [first, last) below the
// largest power of two and of those that folded into them.
class Halves {
 public:
  Halves(const Chunks& work, int power) : work_(work), power_(power) {}

  size_t Bytes(int first, int last) const {
    return work_.Range(first, last).size() + Folded(first, last).size();
  }
  std::vector<std::byte> Pack(int first, int last) const {
    const std::span<std::byte> lower = work_.Range(first, last), upper = Folded(first, last);
    std::vector<std::byte> packed(lower.begin(), lower.end());
    packed.insert(packed.end(), upper.begin(), upper.end());
    return packed;
  }
  void Add(int first, int last, std::span<const std::byte> packed, const Reduction& reduction,
           bool is_last) const {
    const std::span<std::byte> lower = work_.Range(first, last), upper = Folded(first, last);
    const size_t width = SizeOf(reduction.type);
    reduction.Apply(lower.data(), packed.data(), lower.size() / width, is_last);
    reduction.Apply(upper.data(), packed.data() + lower.size(), upper.size() / width, is_last);
  }

 private:
  std::span<std::byte> Folded(int first, int last) const {
    const int n = work_.count();
    return work_.Range(std::min(n, first + power_), std::min(n, last + power_));
  }

  const Chunks& work_;
  const int power_;
};

absl::Status ReduceByHalving(Links& links, const Chunks& work, int power,
                             const Reduction& reduction, base::Deadline deadline) {
  const Halves halves(work, power);
  int first = 0, last = power;
  while (last - first > 1) {
    const int half = (last - first) / 2;
    const int middle = first + half;
    const bool is_lower = links.rank() < middle;
    const std::vector<std::byte> given =
        is_lower ? halves.Pack(middle, last) : halves.Pack(first, middle);
    (is_lower ? last : first) = middle;
    std::vector<std::byte> got(halves.Bytes(first, last));
    const int partner = links.rank() ^ half;
    TUTTI_RETURN_IF_ERROR(links.Exchange(partner, given, partner, got, deadline));
    halves.Add(first, last, got, reduction, last - first == 1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RingReduceScatter(Links& links, const std::byte* input, std::span<const size_t> counts,
                               std::byte* output, const Reduction& reduction,
                               base::Deadline deadline) {
  const Chunks chunks(const_cast<std::byte*>(input), counts, SizeOf(reduction.type));
  ReduceScatterFlow flow(links.rank(), chunks, output, reduction);
  return links.Move(flow, links.Right(), links.Left(), deadline);
}

absl::Status HalvingReduceScatter(Links& links, const std::byte* input,
                                  std::span<const size_t> counts, std::byte* output,
                                  const Reduction& reduction, base::Deadline deadline) {
  const int rank = links.rank();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(links.size())));
  const Chunks given(const_cast<std::byte*>(input), counts, SizeOf(reduction.type));
  const size_t own_bytes = given[rank].size();
  if (rank >= power) {
    TUTTI_RETURN_IF_ERROR(links.Send(rank - power, given.All(), deadline));
    return links.Receive(rank - power, {output, own_bytes}, deadline);
  }
  std::vector<std::byte> copy(given.All().begin(), given.All().end());
  const Chunks work(copy.data(), counts, SizeOf(reduction.type));
  const bool has_folded = rank + power < links.size();
  if (has_folded) {
    std::vector<std::byte> other(copy.size());
    TUTTI_RETURN_IF_ERROR(links.Receive(rank + power, other, deadline));
    reduction.Apply(copy.data(), other.data(), copy.size() / SizeOf(reduction.type), false);
  }
  TUTTI_RETURN_IF_ERROR(ReduceByHalving(links, work, power, reduction, deadline));
  if (own_bytes > 0) std::memcpy(output, work[rank].data(), own_bytes);
  if (has_folded) return links.Send(rank + power, work[rank + power], deadline);
  return absl::OkStatus();
}

}  // namespace tutti::comm

#include "runtime/comm/collective/halving_doubling.h"

#include <algorithm>
#include <bit>

#include "base/status.h"
#include "runtime/comm/collective/chunks.h"

namespace tutti::comm {
namespace {

constexpr size_t kHalvingBlock = 128 << 10;  // added at once: stays in the second-level cache

// Sends `outgoing` and adds what comes to `sum`, at once.
class AddingFlow final : public Flow {
 public:
  AddingFlow(std::span<const std::byte> outgoing, std::span<std::byte> sum,
             const Reduction& reduction, bool last)
      : outgoing_(outgoing), sum_(sum), reduction_(reduction), last_(last) {}

  std::span<const std::byte> Outgoing() override { return outgoing_; }
  void Sent(size_t bytes) override { outgoing_ = outgoing_.subspan(bytes); }
  size_t MinIncoming() override { return sum_.empty() ? 0 : width_; }
  absl::StatusOr<size_t> Take(Channel& from) override {
    TUTTI_ASSIGN_OR_RETURN(const std::span<const std::byte> come,
                           from.Peek(width_, std::min(sum_.size(), kHalvingBlock)));
    const size_t elements = come.size() / width_;
    reduction_.Apply(sum_.data(), come.data(), elements, last_);
    from.Release(elements * width_);
    sum_ = sum_.subspan(elements * width_);
    return elements * width_;
  }
  bool Done() const override { return outgoing_.empty() && sum_.empty(); }

 private:
  std::span<const std::byte> outgoing_;
  std::span<std::byte> sum_;
  const Reduction& reduction_;
  const bool last_;
  const size_t width_ = SizeOf(reduction_.type);
};

// The ranks below the largest power of two.
absl::Status Halve(Links& links, const Chunks& chunks, int power, const Reduction& reduction,
                   base::Deadline deadline) {
  int first = 0;
  for (int distance = power / 2; distance > 0; distance /= 2) {
    const int partner = links.rank() ^ distance;
    const int kept = (links.rank() & distance) == 0 ? first : first + distance;
    const int given = (links.rank() & distance) == 0 ? first + distance : first;
    AddingFlow flow(chunks.Range(given, given + distance), chunks.Range(kept, kept + distance),
                    reduction, distance == 1);
    TUTTI_RETURN_IF_ERROR(links.Move(flow, partner, partner, deadline));
    first = kept;
  }
  return absl::OkStatus();
}

absl::Status Double(Links& links, const Chunks& chunks, int power, base::Deadline deadline) {
  for (int distance = 1; distance < power; distance *= 2) {
    const int partner = links.rank() ^ distance;
    const int own = links.rank() & -distance, other = partner & -distance;
    TUTTI_RETURN_IF_ERROR(links.Exchange(partner, chunks.Range(own, own + distance), partner,
                                         chunks.Range(other, other + distance), deadline));
  }
  return absl::OkStatus();
}

// One of the two of a pair adds the first half, the other the second half, which goes to the lower.
absl::Status Fold(Links& links, const Chunks& halves, int partner, const Reduction& reduction,
                  base::Deadline deadline) {
  const bool lower = links.rank() < partner;
  AddingFlow flow(halves[lower ? 1 : 0], halves[lower ? 0 : 1], reduction, false);
  TUTTI_RETURN_IF_ERROR(links.Move(flow, partner, partner, deadline));
  return lower ? links.Receive(partner, halves[1], deadline)
               : links.Send(partner, halves[1], deadline);
}

}  // namespace

absl::Status HalvingDoublingAllReduce(Links& links, std::byte* data, size_t count,
                                      const Reduction& reduction, base::Deadline deadline) {
  const size_t width = SizeOf(reduction.type);
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(links.size())));
  const int beyond = links.size() - power;
  const int rank = links.rank();
  const Chunks chunks = Chunks::Even(data, count, width, power);
  const Chunks halves = Chunks::Even(data, count, width, 2);
  if (rank >= power) {
    TUTTI_RETURN_IF_ERROR(Fold(links, halves, rank - power, reduction, deadline));
    return links.Receive(rank - power, chunks.All(), deadline);
  }
  if (rank < beyond) {
    TUTTI_RETURN_IF_ERROR(Fold(links, halves, rank + power, reduction, deadline));
  }
  TUTTI_RETURN_IF_ERROR(Halve(links, chunks, power, reduction, deadline));
  TUTTI_RETURN_IF_ERROR(Double(links, chunks, power, deadline));
  return rank < beyond ? links.Send(rank + power, chunks.All(), deadline) : absl::OkStatus();
}

}  // namespace tutti::comm

#include "runtime/comm/collective/adasum.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/status.h"
#include "runtime/comm/collective/reduction/element.h"

namespace tutti::comm {
namespace {

struct Dots {
  double aa = 0, ab = 0, bb = 0;
  // Commutative, so that both partners of an exchange get equal bits.
  void Add(const Dots& other) {
    aa += other.aa;
    ab += other.ab;
    bb += other.bb;
  }
};

template <typename Element>
TUTTI_INLINE double At(const std::byte* data, size_t i) {
  typename Element::Stored stored;
  std::memcpy(&stored, data + i * sizeof(stored), sizeof(stored));
  return static_cast<double>(Element::Load(stored));
}

template <typename Element>
TUTTI_INLINE void Put(std::byte* data, size_t i, double value) {
  const auto stored = Element::Store(static_cast<typename Element::Value>(value));
  std::memcpy(data + i * sizeof(stored), &stored, sizeof(stored));
}

// Several sums side by side: a vector register of them, and less rounding than in one.
template <typename Element>
Dots DotsOf(const std::byte* a, const std::byte* b, size_t count) {
  constexpr size_t kLanes = 8;
  double aa[kLanes] = {}, ab[kLanes] = {}, bb[kLanes] = {};
  const auto add = [&](size_t lane, size_t i) {
    const double x = At<Element>(a, i), y = At<Element>(b, i);
    aa[lane] += x * x;
    ab[lane] += x * y;
    bb[lane] += y * y;
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) add(lane, i + lane);
  }
  for (; i < count; ++i) add(i % kLanes, i);
  Dots dots;
  for (size_t lane = 0; lane < kLanes; ++lane) dots.Add({aa[lane], ab[lane], bb[lane]});
  return dots;
}

struct Coefficients {
  double a, b;
  explicit Coefficients(const Dots& dots)
      : a(Share(dots.ab, dots.aa)), b(Share(dots.ab, dots.bb)) {}
  static double Share(double ab, double square) {
    static const double kNoLength = std::sqrt(std::numeric_limits<double>::min());
    return square < kNoLength ? 1.0 : 1.0 - ab / (2 * square);
  }
};

// Into `into`, which is one of the two.
template <typename Element>
void Combine(const std::byte* a, const std::byte* b, std::byte* into, size_t count,
             const Coefficients& share) {
  for (size_t i = 0; i < count; ++i) {
    Put<Element>(into, i, share.a * At<Element>(a, i) + share.b * At<Element>(b, i));
  }
}

template <typename Visitor>
auto ForType(DataType type, const Visitor& visitor) {
  switch (type) {
    case DataType::kFloat64:
      return visitor(Plain<double>());
    case DataType::kFloat16:
      return visitor(Float16());
    case DataType::kBFloat16:
      return visitor(BFloat16());
    default:
      return visitor(Plain<float>());
  }
}

Dots DotsOf(DataType type, const std::byte* a, const std::byte* b, size_t count) {
  return ForType(type, [&]<typename Element>(Element) { return DotsOf<Element>(a, b, count); });
}

void Combine(DataType type, const std::byte* a, const std::byte* b, std::byte* into, size_t count,
             const Coefficients& share) {
  ForType(type, [&]<typename Element>(Element) { Combine<Element>(a, b, into, count, share); });
}

// The sum over the 2 * distance ranks that hold the pieces of the same two vectors.
absl::Status SumDots(Links& links, Dots& dots, int distance, base::Deadline deadline) {
  for (int d = 1; d <= distance; d *= 2) {
    Dots other;
    const int partner = links.rank() ^ d;
    TUTTI_RETURN_IF_ERROR(links.Exchange(partner, std::as_bytes(std::span(&dots, 1)), partner,
                                         std::as_writable_bytes(std::span(&other, 1)), deadline));
    dots.Add(other);
  }
  return absl::OkStatus();
}

// What a rank still holds, cut in two at every level.
class Tree {
 public:
  Tree(Links& links, std::byte* data, size_t count, DataType type, base::Deadline deadline)
      : links_(links), type_(type), deadline_(deadline), held_(data, count * SizeOf(type)) {}

  absl::Status Climb(int power) {
    for (int distance = 1; distance < power; distance *= 2) {
      TUTTI_RETURN_IF_ERROR(Level(distance));
    }
    return absl::OkStatus();
  }

  absl::Status Descend() {
    for (; !given_.empty(); given_.pop_back()) {
      const auto [partner, place] = given_.back();
      TUTTI_RETURN_IF_ERROR(links_.Exchange(partner, held_, partner, place, deadline_));
      held_ = {std::min(held_.data(), place.data()), held_.size() + place.size()};
    }
    return absl::OkStatus();
  }

 private:
  struct Given {
    int partner;
    std::span<std::byte> place;
  };

  absl::Status Level(int distance) {
    const int partner = links_.rank() ^ distance;
    const bool has_a = (links_.rank() & distance) == 0;
    const size_t width = SizeOf(type_);
    const size_t half = held_.size() / width / 2 * width;
    const std::span<std::byte> lower = held_.first(half), upper = held_.subspan(half);
    held_ = has_a ? lower : upper;
    given_.push_back({partner, has_a ? upper : lower});
    other_.resize(held_.size());
    TUTTI_RETURN_IF_ERROR(
        links_.Exchange(partner, given_.back().place, partner, other_, deadline_));
    const std::byte* const a = has_a ? held_.data() : other_.data();
    const std::byte* const b = has_a ? other_.data() : held_.data();
    const size_t count = held_.size() / width;
    Dots dots = DotsOf(type_, a, b, count);
    TUTTI_RETURN_IF_ERROR(SumDots(links_, dots, distance, deadline_));
    Combine(type_, a, b, held_.data(), count, Coefficients(dots));
    return absl::OkStatus();
  }

  Links& links_;
  const DataType type_;
  const base::Deadline deadline_;
  std::span<std::byte> held_;
  std::vector<Given> given_;
  std::vector<std::byte> other_;
};

}  // namespace

void Adasum(std::byte* a, const std::byte* b, size_t count, DataType type) {
  Combine(type, a, b, a, count, Coefficients(DotsOf(type, a, b, count)));
}

absl::Status AdasumAllReduce(Links& links, std::byte* data, size_t count, DataType type,
                             base::Deadline deadline) {
  const int rank = links.rank();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(links.size())));
  const std::span<std::byte> all(data, count * SizeOf(type));
  if (rank >= power) {
    TUTTI_RETURN_IF_ERROR(links.Send(rank - power, all, deadline));
    return links.Receive(rank - power, all, deadline);
  }
  const bool has_folded = rank + power < links.size();
  if (has_folded) {
    std::vector<std::byte> other(all.size());
    TUTTI_RETURN_IF_ERROR(links.Receive(rank + power, other, deadline));
    Adasum(data, other.data(), count, type);
  }
  Tree tree(links, data, count, type, deadline);
  TUTTI_RETURN_IF_ERROR(tree.Climb(power));
  TUTTI_RETURN_IF_ERROR(tree.Descend());
  if (has_folded) return links.Send(rank + power, all, deadline);
  return absl::OkStatus();
}

}  // namespace tutti::comm

#include "runtime/comm/collective/latency_optimal.h"

#include <bit>
#include <cstring>
#include <vector>

#include "base/status.h"

namespace tutti::comm {
namespace {

// The result in `data`, the one of the lower ranks as first operand.
void Combine(std::span<std::byte> data, std::span<std::byte> other, bool other_is_lower,
             const Reduction& reduction, bool last) {
  const size_t count = data.size() / SizeOf(reduction.type);
  if (other_is_lower) return reduction.Apply(data.data(), other.data(), count, last);
  reduction.Apply(other.data(), data.data(), count, last);
  std::memcpy(data.data(), other.data(), data.size());
}

}  // namespace

absl::Status DoublingAllReduce(Links& links, std::span<std::byte> data, const Reduction& reduction,
                               base::Deadline deadline) {
  const int rank = links.rank();
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(links.size())));
  const int beyond = links.size() - power;
  if (rank >= power) {
    TUTTI_RETURN_IF_ERROR(links.Send(rank - power, data, deadline));
    return links.Receive(rank - power, data, deadline);
  }
  std::vector<std::byte> other(data.size());
  if (rank < beyond) {
    TUTTI_RETURN_IF_ERROR(links.Receive(rank + power, other, deadline));
    Combine(data, other, false, reduction, false);
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const int partner = rank ^ distance;
    TUTTI_RETURN_IF_ERROR(links.Exchange(partner, data, partner, other, deadline));
    Combine(data, other, partner < rank, reduction, 2 * distance == power);
  }
  if (rank < beyond) return links.Send(rank + power, data, deadline);
  return absl::OkStatus();
}

absl::Status TreeBroadcast(Links& links, std::span<std::byte> data, int root,
                           base::Deadline deadline) {
  const int size = links.size();
  const int place = (links.rank() - root + size) % size;  // the root's is 0
  // The parent's place is this one without its lowest bit.
  int distance =
      place == 0 ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(size))) : place & -place;
  if (place != 0) TUTTI_RETURN_IF_ERROR(links.Receive(links.Left(distance), data, deadline));
  for (distance /= 2; distance > 0; distance /= 2) {
    if (place + distance >= size) continue;
    TUTTI_RETURN_IF_ERROR(links.Send(links.Right(distance), data, deadline));
  }
  return absl::OkStatus();
}

absl::Status DisseminationBarrier(Links& links, base::Deadline deadline) {
  const std::byte out{1};
  std::byte in{0};
  for (int distance = 1; distance < links.size(); distance *= 2) {
    TUTTI_RETURN_IF_ERROR(
        links.Exchange(links.Right(distance), {&out, 1}, links.Left(distance), {&in, 1}, deadline));
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm

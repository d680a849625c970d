#include "runtime/comm/collective/measurement.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "base/status.h"
#include "runtime/comm/collective/latency_optimal.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {
namespace {

constexpr size_t kSome = 64 << 10;
constexpr size_t kMany = 1 << 20;
constexpr double kQuick = 0.25e-3;  // of kSome: then kMany take 4 ms
constexpr int kMessages = 16;
constexpr int kBursts = 3;

// The least of several, which is the least disturbed.
template <typename Body>
absl::StatusOr<double> LeastSeconds(int times, const Body& body) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times; ++i) {
    const absl::Duration start = base::SteadyNow();
    TUTTI_RETURN_IF_ERROR(body());
    least = std::min(least, absl::ToDoubleSeconds(base::SteadyNow() - start));
  }
  return least;
}

// A number from rank 0.
absl::StatusOr<double> Shared(Links& links, double value, base::Deadline deadline) {
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  TUTTI_RETURN_IF_ERROR(TreeBroadcast(links, bytes, 0, deadline));
  return value;
}

double SecondsToAdd(std::span<std::byte> a, std::span<const std::byte> b) {
  const Reduction sum{DataType::kFloat32, ReduceOp::kSum, 2};
  const auto seconds = LeastSeconds(kBursts, [&] {
    sum.Apply(a.data(), b.data(), a.size() / sizeof(float), false);
    return absl::OkStatus();
  });
  return seconds.value_or(0);
}

}  // namespace

absl::StatusOr<LinkCost> MeasureLinks(Links& links, base::Deadline deadline) {
  std::vector<std::byte> out(kMany), in(kMany);
  const auto pass = [&](int to, int from, size_t bytes) {
    return links.Exchange(to, std::span(out).first(bytes), from, std::span(in).first(bytes),
                          deadline);
  };
  // From the first byte that leaves until the receipt is there, which the right neighbour sends
  // when it has all: what its own bytes have waited for this rank does not shorten it.
  const auto until_received = [&](size_t bytes) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(pass(links.Right(), links.Left(), bytes));
    return pass(links.Left(), links.Right(), 1);
  };
  TUTTI_ASSIGN_OR_RETURN(double both_ways,
                         LeastSeconds(kMessages, [&] { return until_received(1); }));
  TUTTI_ASSIGN_OR_RETURN(double burst,
                         LeastSeconds(kBursts, [&] { return until_received(kSome); }));
  TUTTI_ASSIGN_OR_RETURN(both_ways, Shared(links, both_ways, deadline));
  TUTTI_ASSIGN_OR_RETURN(burst, Shared(links, burst, deadline));
  size_t bytes = kSome;
  if (burst < kQuick) {  // on every rank or on none
    bytes = kMany;
    TUTTI_ASSIGN_OR_RETURN(burst, LeastSeconds(kBursts, [&] { return until_received(kMany); }));
  }
  const double beta = std::max(burst - both_ways, 0.0) / static_cast<double>(bytes);
  const double gamma = SecondsToAdd(in, out) / static_cast<double>(kMany);
  LinkCost cost{both_ways / 2, 0, 0};
  TUTTI_ASSIGN_OR_RETURN(cost.beta, Shared(links, beta, deadline));
  TUTTI_ASSIGN_OR_RETURN(cost.gamma, Shared(links, gamma, deadline));
  return cost;
}

}  // namespace tutti::comm

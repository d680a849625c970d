#include "runtime/comm/transport/stream_count.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr size_t kLeastBurst = 64 << 10;
constexpr size_t kLargestBurst = 4 << 20;
constexpr double kBurstSeconds = 0.002;
constexpr double kMustWinBy = 0.9;
constexpr std::array<int, 3> kCounts = {1, 2, kMostMeasuredStreams};

absl::Status Sleep(Channel& channel, bool to_send, bool to_receive, const Patience& patience) {
  const short events = channel.PrepareToSleep(to_send, to_receive ? 1 : 0);
  const absl::Status waited =
      events == 0 ? absl::OkStatus() : WaitFor(channel.fd(), events, patience);
  channel.Wake();
  return waited;
}

// All of both, at once; the seconds that it took.
absl::StatusOr<double> Exchange(Channel& channel, std::span<const std::byte> out,
                                std::span<std::byte> in, const Patience& patience) {
  const absl::Duration start = base::SteadyNow();
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(
        const size_t sent,
        channel.TrySend(out.first(std::min(out.size(), StripedChannel::kStripe))));
    TUTTI_ASSIGN_OR_RETURN(const size_t received, channel.TryReceive(in));
    out = out.subspan(sent);
    in = in.subspan(received);
    TUTTI_ASSIGN_OR_RETURN(const bool flushed, channel.Flush());
    if (out.empty() && in.empty() && flushed)
      return absl::ToDoubleSeconds(base::SteadyNow() - start);
    if (sent + received > 0) continue;
    TUTTI_RETURN_IF_ERROR(Sleep(channel, !out.empty(), !in.empty(), patience));
  }
}

// The opener's number to the listener, which gets it.
absl::StatusOr<size_t> Agree(Channel& channel, Side side, size_t number, const Patience& patience) {
  std::array<std::byte, 4> bytes = {};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
  const bool tells = side == Side::kOpener;
  const std::span<std::byte> all(bytes);
  TUTTI_RETURN_IF_ERROR(
      Exchange(channel, tells ? all : all.first(0), tells ? all.first(0) : all, patience).status());
  number = 0;
  for (size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace

absl::Status ChooseStreams(StripedChannel& channel, Side side, const Patience& patience) {
  std::vector<std::byte> out(kLargestBurst), in(kLargestBurst);
  const auto burst = [&](size_t bytes) {
    return Exchange(channel, std::span(out).first(bytes), std::span(in).first(bytes), patience);
  };
  channel.UseFirst(1);
  TUTTI_ASSIGN_OR_RETURN(const double first, burst(kLeastBurst));
  const double fits = kBurstSeconds / std::max(first, 1e-9) * static_cast<double>(kLeastBurst);
  TUTTI_ASSIGN_OR_RETURN(
      size_t bytes,
      Agree(channel, side,
            static_cast<size_t>(std::clamp(fits, double{kLeastBurst}, double{kLargestBurst})),
            patience));
  bytes = std::clamp(bytes, kLeastBurst, kLargestBurst);  // it is the other side's word
  int best = 1;
  double best_seconds = std::numeric_limits<double>::infinity();
  for (const int count : kCounts) {
    channel.UseFirst(count);
    double seconds = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 2; ++round) {
      TUTTI_ASSIGN_OR_RETURN(const double took, burst(bytes));
      seconds = std::min(seconds, took);
    }
    if (seconds > best_seconds * kMustWinBy) continue;
    best = count;
    best_seconds = seconds;
  }
  channel.UseFirst(1);
  TUTTI_ASSIGN_OR_RETURN(const size_t chosen,
                         Agree(channel, side, static_cast<size_t>(best), patience));
  if (chosen < 1 || chosen > channel.streams()) {
    return absl::InvalidArgumentError("the other side chose streams that there are not");
  }
  channel.UseFirst(static_cast<int>(chosen));
  return absl::OkStatus();
}

}  // namespace tutti::comm

#include "runtime/comm/negotiation/coordination/stall_inspector.h"

#include <algorithm>

namespace tutti::comm {

StallInspector::StallInspector(const StallOptions& options, int size)
    : options_(options), reported_(size) {}

absl::Duration StallInspector::period() const {
  absl::Duration shortest = options_.peer_timeout / 2;
  for (const absl::Duration limit : {options_.warning, options_.shutdown}) {
    if (limit > absl::ZeroDuration()) shortest = std::min(shortest, limit);
  }
  return std::max(shortest / 4, absl::Milliseconds(1));
}

std::vector<Stall> StallInspector::Late(const std::vector<Waiting>& waiting,
                                        absl::Duration now) const {
  std::vector<Stall> stalls;
  if (options_.warning <= absl::ZeroDuration()) return stalls;
  for (const Waiting& one : waiting) {
    if (one.warned == nullptr || now - *one.warned < options_.warning) continue;
    *one.warned = now;
    if (stalls.size() == kMostStalls) continue;
    stalls.push_back({*one.name, one.set, now - one.since, one.missing, -1, {}});
  }
  return stalls;
}

void StallInspector::Silent(int rank, absl::Duration silence, const std::vector<Waiting>& waiting,
                            absl::Duration now, std::vector<Stall>& stalls) {
  if (silence < options_.peer_timeout / 2) {
    reported_[rank] = false;
    return;
  }
  if (reported_[rank]) return;
  size_t found = 0;
  for (const Waiting& one : waiting) {
    if (std::find(one.missing.begin(), one.missing.end(), rank) == one.missing.end()) continue;
    if (++found > kMostStalls) break;
    stalls.push_back({*one.name, one.set, now - one.since, {rank}, rank, silence});
  }
  reported_[rank] = found > 0;
}

std::vector<Stall> StallInspector::Inspect(const std::vector<Waiting>& waiting, absl::Duration now,
                                           std::span<const absl::Duration> silence) {
  std::vector<Stall> stalls = Late(waiting, now);
  for (size_t rank = 0; rank < silence.size(); ++rank) {
    Silent(static_cast<int>(rank), silence[rank], waiting, now, stalls);
  }
  return stalls;
}

const Waiting* StallInspector::Hopeless(const std::vector<Waiting>& waiting,
                                        absl::Duration now) const {
  if (options_.shutdown <= absl::ZeroDuration()) return nullptr;
  const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& one) {
    return one.warned != nullptr && now - one.since >= options_.shutdown;
  });
  return found == waiting.end() ? nullptr : &*found;
}

}  // namespace tutti::comm

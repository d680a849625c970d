// Who keeps the coordinator waiting, and how the negotiation ends.
#include <algorithm>
#include <utility>

#include "runtime/comm/negotiation/coordination/coordinator.h"

namespace tutti::comm {

void Coordinator::OnLeft(int rank, absl::Duration now) {
  left_[rank] = true;
  outgoing_[rank].leave_ack = true;
  if (rank == 0) Finish({absl::StatusCode::kCancelled, "rank 0 has shut down", 0});
  if (finished_) return;
  for (auto& [number, set] : sets_) {
    const auto index = set.IndexOf(rank);
    if (!index.has_value()) continue;
    Release(number, set, now);
    SettleAll(number, now);
  }
}

void Coordinator::Finish(const End& end) {
  if (std::exchange(finished_, true)) return;
  for (int rank = 0; rank < options_.size; ++rank) {
    End& told = outgoing_[rank].end.emplace(end);
    told.text.resize(std::min(told.text.size(), kLongestError));
  }
}

void Coordinator::OnTick(absl::Duration now, std::span<const absl::Duration> silence) {
  if (finished_) return;
  ReleaseDue(now);
  if (now < next_inspection_ || idle()) return;
  next_inspection_ = now + inspector_.period();
  Inspect(now, silence);
}

// Ready ones wait for nobody.
std::vector<Waiting> Coordinator::WhatWaits() const {
  std::vector<Waiting> waiting;
  for (const auto& [order, tensor] : tensors_.pending()) {
    if (tensor->ready) continue;
    const ProcessSet& set = sets_.at(tensor->request.set);
    std::vector<int> missing;
    for (size_t i = 0; i < set.ranks.size(); ++i) {
      if (!tensor->announced[i] && !set.joined[i]) missing.push_back(set.ranks[i]);
    }
    waiting.push_back({&tensor->request.name, tensor->request.set, tensor->since, &tensor->warned,
                       std::move(missing)});
  }
  for (const Flight& flight : in_flight_) {
    const auto set = sets_.find(flight.set);
    if (set == sets_.end()) continue;
    waiting.push_back({&flight.tensor, flight.set, flight.since, nullptr, set->second.ranks});
  }
  return waiting;
}

void Coordinator::Inspect(absl::Duration now, std::span<const absl::Duration> silence) {
  const std::vector<Waiting> waiting = WhatWaits();
  const std::vector<Stall> stalls = inspector_.Inspect(waiting, now, silence);
  for (int rank = 0; rank < options_.size && !stalls.empty(); ++rank) {
    if (left_[rank]) continue;
    std::vector<Stall>& told = outgoing_[rank].stalls;
    told.insert(told.end(), stalls.begin(), stalls.end());
  }
  const Waiting* const hopeless = inspector_.Hopeless(waiting, now);
  if (hopeless == nullptr) return;
  const Stall stall{
      *hopeless->name, hopeless->set, now - hopeless->since, hopeless->missing, -1, {}};
  Finish({absl::StatusCode::kDeadlineExceeded, stall.ToString(),
          hopeless->missing.empty() ? -1 : hopeless->missing[0]});
}

absl::Duration Coordinator::NextTick() const {
  if (finished_ || idle()) return absl::InfiniteDuration();
  absl::Duration next = next_inspection_;
  for (const auto& [number, set] : sets_) {
    if (!set.ready.empty()) next = std::min(next, set.ready_since + options_.cycle_time);
  }
  return next;
}

}  // namespace tutti::comm

// What the coordinator does with tensors that are ready.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/negotiation/coordination/coordinator.h"
#include "runtime/comm/negotiation/coordination/fuse.h"

namespace tutti::comm {

bool Coordinator::IsDue(const ProcessSet& set, absl::Duration now) const {
  if (set.ready.empty()) return false;
  return set.urgent || executed_[set.ranks[0]] >= set.released ||
         set.ready_bytes >= options_.fusion_bytes || now - set.ready_since >= options_.cycle_time;
}

void Coordinator::ReleaseDue(absl::Duration now) {
  for (auto& [number, set] : sets_) {
    if (IsDue(set, now)) Release(number, set, now);
  }
}

void Coordinator::Release(int number, ProcessSet& set, absl::Duration now) {
  for (const auto& batch : Fuse(std::exchange(set.ready, {}), options_.fusion_bytes)) {
    Response response;
    for (Tensor* const tensor : batch) {
      Unit& unit = response.units.emplace_back();
      unit.full = !tensor->by_id || tensor->count < set.ranks.size();
      unit.request = tensor->request;
      if (tensor->request.kind == Kind::kAllGather) {
        for (const auto& rows : tensor->rows) {
          unit.rows.insert(unit.rows.end(), rows.begin(), rows.end());
        }
      }
    }
    Send(number, std::move(response), batch, now);
  }
  set.ready_bytes = 0;
  set.urgent = false;
}

// To every rank of the set, with the numbers that the tensors may have from now on.
void Coordinator::Send(int number, Response response, const Tensors& tensors, absl::Duration now) {
  ProcessSet& set = sets_.at(number);
  Flight flight{number, 0, 0, response.units[0].request.name, now};
  for (size_t i = 0; i < tensors.size(); ++i) {
    Unit& unit = response.units[i];
    if (unit.request.kind == Kind::kAllReduce) flight.bytes += Bytes(unit.request);
    unit.id = tensors_.End(*tensors[i], unit.request.kind < Kind::kBarrier);
    if (!unit.full) unit.request = Request();
  }
  response.set = number;
  response.fusion_bytes = options_.fusion_bytes;
  for (const int rank : set.ranks) SendResponse(rank, response);
  ++releases_;
  flight.number = set.released = told_[set.ranks[0]];
  in_flight_.push_back(std::move(flight));
}

void Coordinator::SendResponse(int rank, const Response& response) {
  ++told_[rank];
  outgoing_[rank].responses.push_back(response);
}

// Process sets and join change what follows, so all that is ready goes before them.
void Coordinator::Conclude(Tensor& tensor, absl::Duration now) {
  for (auto& [number, set] : sets_) Release(number, set, now);
  const absl::StatusOr<int64_t> value = Apply(tensor.request);
  if (!value.ok()) {
    return Fail(tensor, value.status().code(), std::string(value.status().message()), -1);
  }
  Response response;
  response.value = *value;
  Unit& unit = response.units.emplace_back();
  unit.full = true;
  unit.request = tensor.request;
  const int set = tensor.request.set;
  Send(set, std::move(response), {&tensor}, now);
}

absl::StatusOr<int64_t> Coordinator::Apply(const Request& request) {
  if (request.kind == Kind::kAddSet) return AddSet(request.ranks);
  if (request.kind == Kind::kRemoveSet) return RemoveSet(request.root);
  ProcessSet& set = sets_.at(request.set);
  set.joined.assign(set.ranks.size(), false);
  return set.last_joined;
}

absl::StatusOr<int64_t> Coordinator::AddSet(const std::vector<int>& ranks) {
  if (ranks.empty() || ranks.back() >= options_.size ||
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) != ranks.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not distinct ranks of the world: ", absl::StrJoin(ranks, ",")));
  }
  for (const auto& [number, set] : sets_) {
    if (set.ranks != ranks) continue;
    return absl::AlreadyExistsError(absl::StrCat("process set ", number, " has these ranks"));
  }
  ProcessSet& added = sets_[next_set_];
  added.ranks = ranks;
  added.joined.resize(ranks.size());
  return next_set_++;
}

absl::StatusOr<int64_t> Coordinator::RemoveSet(int set) {
  if (set == kWorldSet) return absl::InvalidArgumentError("the set of all ranks stays");
  if (sets_.count(set) == 0) {
    return absl::NotFoundError(absl::StrCat("there is no process set ", set));
  }
  for (const uint64_t order : tensors_.PendingOf(set)) {
    Fail(*tensors_.pending().at(order), absl::StatusCode::kNotFound, "its process set was removed",
         -1);
  }
  tensors_.ForgetSet(set);
  sets_.erase(set);
  return set;
}

}  // namespace tutti::comm

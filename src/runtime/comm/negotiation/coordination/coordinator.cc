#include "runtime/comm/negotiation/coordination/coordinator.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/negotiation/coordination/fuse.h"
#include "runtime/comm/rendezvous/wire/codec.h"

namespace tutti::comm {
namespace {

constexpr size_t kMostRows = kMostRanks;  // what a list holds

std::string Quoted(const Request& request) {
  return absl::StrCat(
      "tensor \"", request.name, "\"",
      request.set == kWorldSet ? "" : absl::StrCat(" of process set ", request.set));
}

// What no rank of ours sends.
bool IsSane(const Announcement& announcement, const Request& request) {
  const size_t rows = request.kind == Kind::kAllGather ? request.parts.size() : 0;
  if (announcement.rows.size() != rows) return false;
  if (announcement.id == 0 && !Check(request).ok()) return false;
  for (size_t i = 0; i < rows; ++i) {
    if (!AreRows(request.parts[i], announcement.rows[i])) return false;
  }
  return true;
}

}  // namespace

std::optional<size_t> Coordinator::ProcessSet::IndexOf(int rank) const {
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (found == ranks.end() || *found != rank) return std::nullopt;
  return static_cast<size_t>(found - ranks.begin());
}

Coordinator::Coordinator(const CoordinatorOptions& options)
    : options_(options),
      tensors_(options.cache_capacity),
      told_(options.size),
      executed_(options.size),
      left_(options.size),
      inspector_(options.stall, options.size) {
  ProcessSet world;
  world.ranks.resize(options.size);
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  world.joined.resize(options.size);
  sets_[kWorldSet] = std::move(world);
}

std::vector<std::pair<int, Orders>> Coordinator::TakeOutgoing() {
  std::vector<std::pair<int, Orders>> taken;
  for (auto& [rank, orders] : outgoing_) taken.emplace_back(rank, std::move(orders));
  outgoing_.clear();
  return taken;
}

void Coordinator::Tune(size_t fusion_bytes, absl::Duration cycle_time) {
  options_.fusion_bytes = fusion_bytes;
  options_.cycle_time = cycle_time;
}

void Coordinator::OnReport(int from, const Report& report, absl::Duration now) {
  OnExecuted(from, report.executed);
  for (const Announcement& announcement : report.announcements) {
    if (!finished_ && !left_[from]) Announce(from, announcement, now);
  }
  if (report.leaves && !left_[from]) OnLeft(from, now);
  if (!finished_) ReleaseDue(now);
}

void Coordinator::OnExecuted(int from, uint64_t executed) {
  executed_[from] = std::max(executed_[from], std::min(executed, told_[from]));
  std::erase_if(in_flight_, [&](const Flight& flight) {
    const auto set = sets_.find(flight.set);
    if (set != sets_.end() && executed_[set->second.ranks[0]] < flight.number) return false;
    executed_bytes_ += flight.bytes;
    return true;
  });
}

void Coordinator::Announce(int from, const Announcement& announcement, absl::Duration now) {
  Tensor* tensor = nullptr;
  if (announcement.id != 0) {
    tensor = tensors_.ById(announcement.id);
    if (tensor == nullptr) return outgoing_[from].unknown.push_back(announcement.id);
  }
  const Request& request = tensor != nullptr ? tensor->request : announcement.request;
  const auto set = sets_.find(request.set);
  if (set == sets_.end()) return Refuse(from, request, "there is no such process set");
  const auto index = set->second.IndexOf(from);
  if (!index.has_value()) return Refuse(from, request, "this rank is not in the process set");
  if (!IsSane(announcement, request)) return Refuse(from, request, "it makes no sense");
  if (tensor == nullptr) tensor = &tensors_.Named(request);
  if (!tensor->pending()) {
    tensors_.Begin(*tensor, set->second.ranks.size(), now);
    tensor->first = from;
  }
  if (tensor->announced[*index]) return;
  if (options_.on_announced) options_.on_announced(request.name, from);
  Record(from, *index, announcement, *tensor);
  const bool joins = announcement.id == 0 && announcement.request.kind == Kind::kJoin;
  if (!joins || tensor->request.kind != Kind::kJoin) return Settle(*tensor, now);
  set->second.joined[*index] = true;
  set->second.last_joined = from;
  SettleAll(set->first, now);
}

void Coordinator::Record(int from, size_t index, const Announcement& announcement, Tensor& tensor) {
  tensor.announced[index] = true;
  ++tensor.count;
  tensor.by_id = tensor.by_id && announcement.id != 0;
  tensor.rows.resize(tensor.announced.size());
  tensor.rows[index] = announcement.rows;
  if (announcement.id != 0 || tensor.request == announcement.request || !tensor.conflict.empty()) {
    return;
  }
  tensor.conflict = absl::StrCat("rank ", tensor.first, " asks for ", tensor.request.Describe(),
                                 ", but rank ", from, " for ", announcement.request.Describe());
}

// Only this rank is told, which alone waits for it.
void Coordinator::Refuse(int from, const Request& request, absl::string_view text) {
  Response response;
  response.set = request.set;
  Unit& unit = response.units.emplace_back();
  unit.full = true;
  unit.request = request;
  unit.code = absl::StatusCode::kNotFound;
  unit.error = absl::StrCat(Quoted(request), ": ", text);
  SendResponse(from, response);
}

void Coordinator::SettleAll(int set, absl::Duration now) {
  for (const uint64_t order : tensors_.PendingOf(set)) {
    const auto pending = tensors_.pending().find(order);
    if (pending != tensors_.pending().end() && !pending->second->ready)
      Settle(*pending->second, now);
  }
}

bool Coordinator::IsComplete(const Tensor& tensor, const ProcessSet& set) const {
  if (tensor.request.kind == Kind::kJoin) return tensor.count == set.ranks.size();
  size_t missing = set.ranks.size() - tensor.count;
  for (size_t i = 0; i < set.ranks.size() && missing > 0; ++i) {
    if (!tensor.announced[i] && set.joined[i]) --missing;
  }
  return missing == 0;
}

// Why a tensor that all have announced cannot be run; empty if it can.
std::string Coordinator::Objection(const Tensor& tensor, const ProcessSet& set) const {
  const Request& request = tensor.request;
  if (!tensor.conflict.empty()) return tensor.conflict;
  if (tensor.count < set.ranks.size() && !IsRunBesideJoined(request.kind)) {
    const auto joined = std::find(set.joined.begin(), set.joined.end(), true) - set.joined.begin();
    return absl::StrCat("rank ", set.ranks[joined], " has joined, and there is no ",
                        NameOf(request.kind), " without it");
  }
  if (request.kind == Kind::kBroadcast && !set.IndexOf(request.root).has_value()) {
    return absl::StrCat("there is no root ", request.root, " in process set ", request.set);
  }
  if (request.kind == Kind::kAllGather && request.parts.size() * set.ranks.size() > kMostRows) {
    return "too many tensors in one all-gather";
  }
  return "";
}

void Coordinator::Settle(Tensor& tensor, absl::Duration now) {
  ProcessSet& set = sets_.at(tensor.request.set);
  const auto gone =
      std::find_if(set.ranks.begin(), set.ranks.end(), [&](int r) { return left_[r]; });
  if (gone != set.ranks.end()) {
    return Fail(tensor, absl::StatusCode::kCancelled,
                absl::StrCat("rank ", *gone, " has shut down"), *gone);
  }
  if (!IsComplete(tensor, set)) return;
  const std::string objection = Objection(tensor, set);
  if (!objection.empty()) return Fail(tensor, absl::StatusCode::kInvalidArgument, objection, -1);
  if (tensor.request.kind >= Kind::kJoin) return Conclude(tensor, now);
  MakeReady(tensor, set, now);
}

void Coordinator::MakeReady(Tensor& tensor, ProcessSet& set, absl::Duration now) {
  const size_t bytes = Bytes(tensor.request);
  tensor.ready = true;
  if (set.ready.empty()) set.ready_since = now;
  set.ready.push_back(&tensor);
  set.ready_bytes += bytes;
  set.urgent = set.urgent || !IsFusable(tensor.request) || bytes >= kWorthAlone;
}

// Only those who wait for it are told. Who has announced a join that fails has not joined.
void Coordinator::Fail(Tensor& tensor, absl::StatusCode code, absl::string_view text, int blamed) {
  ProcessSet& set = sets_.at(tensor.request.set);
  if (tensor.request.kind == Kind::kJoin) set.joined.assign(set.ranks.size(), false);
  Response response;
  response.set = tensor.request.set;
  Unit& unit = response.units.emplace_back();
  unit.full = true;
  unit.request = tensor.request;
  unit.code = code;
  unit.error = absl::StrCat(Quoted(tensor.request), ": ", text).substr(0, kLongestError);
  unit.blamed = blamed;
  for (size_t i = 0; i < set.ranks.size(); ++i) {
    if (tensor.announced[i] && !left_[set.ranks[i]]) SendResponse(set.ranks[i], response);
  }
  tensors_.End(tensor, false);
}

}  // namespace tutti::comm

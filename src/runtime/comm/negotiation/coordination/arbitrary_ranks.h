// ArbitraryRanks plays, for tests and fuzzing, ranks that report to a coordinator whatever can be
// said in a well-formed Report, in and out of process sets; what it answers has to be readable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/negotiation/coordination/coordination_message.h"
#include "runtime/comm/negotiation/coordination/coordinator.h"

namespace tutti::comm {

class ArbitraryRanks {
 public:
  static constexpr int kRanks = 3;

  // `choose(n)` gives a number below n.
  explicit ArbitraryRanks(std::function<uint32_t(uint32_t)> choose)
      : choose_(std::move(choose)), coordinator_({.size = kRanks, .cache_capacity = 2}) {}

  // Makes a step; false if it said what no rank can read.
  bool Step() {
    now_ += absl::Milliseconds(1);
    Announcement announcement;
    if (choose_(4) == 0) announcement.id = choose_(8);
    if (announcement.id == 0) announcement.request = SomeRequest();
    const Request& request = announcement.request;
    size_t rows = request.kind == Kind::kAllGather ? request.parts.size() : 0;
    if (choose_(4) == 0) rows = choose_(4);
    while (announcement.rows.size() < rows) announcement.rows.push_back(SomeExtent());
    Report report;
    report.executed = choose_(64);
    report.leaves = choose_(255) == 1 && choose_(9) == 1;
    report.announcements = {announcement};
    const bool by_all = choose_(4) > 0;  // else hardly anything would be agreed on
    for (int rank = 0; rank < kRanks; ++rank) {
      if (by_all || choose_(kRanks) == 0) coordinator_.OnReport(rank, report, now_);
    }
    const absl::Duration silence[] = {absl::ZeroDuration(), absl::Seconds(choose_(9)), now_};
    coordinator_.OnTick(now_, silence);
    for (const auto& [to, orders] : coordinator_.TakeOutgoing()) {
      if (to < 0 || to >= kRanks || !ReadOrders(Write(orders)).ok()) return false;
      for (const Response& response : orders.responses) Remember(response);
    }
    return true;
  }

  int sets_added() const { return sets_added_; }
  int sets_removed() const { return sets_removed_; }

 private:
  void Remember(const Response& response) {
    const Unit& unit = response.units.at(0);
    if (unit.code != absl::StatusCode::kOk) return;
    if (unit.request.kind == Kind::kAddSet) {
      newest_set_ = std::max(newest_set_, static_cast<int>(response.value));
      ++sets_added_;
    }
    if (unit.request.kind == Kind::kRemoveSet) ++sets_removed_;
  }
  int SomeSet() { return static_cast<int>(choose_(static_cast<uint32_t>(newest_set_) + 2)); }
  int64_t SomeExtent() {
    constexpr int64_t kExtents[] = {0, 1, 2, 3, -1, INT64_MAX, INT64_MIN, int64_t{1} << 46};
    return kExtents[choose_(2) == 0 ? choose_(4) : choose_(std::size(kExtents))];
  }
  Request SomeRequest() {
    Request request;
    request.kind = static_cast<Kind>(choose_(static_cast<uint32_t>(Kind::kRemoveSet) + 1));
    request.set = choose_(2) == 0 ? kWorldSet : SomeSet();
    request.name =
        request.kind == Kind::kJoin ? "join" : std::string(1, "abcdefghijklmnop"[choose_(16)]);
    if (choose_(20) == 0) request.name = choose_(2) == 0 ? "join" : std::string(kLongestName, 'n');
    request.op = static_cast<ReduceOp>(choose_(static_cast<uint32_t>(ReduceOp::kAdasum) + 1));
    request.root = SomeSet();
    for (uint32_t parts = choose_(3); parts > 0; --parts) {
      Part& part = request.parts.emplace_back();
      part.type = static_cast<DataType>(choose_(static_cast<uint32_t>(DataType::kBool) + 1));
      part.shape.assign(choose_(16) == 0 ? kMostDimensions : choose_(3), SomeExtent());
    }
    for (int rank = 0; rank <= kRanks; ++rank) {
      if (choose_(2) == 0) request.ranks.push_back(choose_(9) == 0 ? 0 : rank);
    }
    return request;
  }

  const std::function<uint32_t(uint32_t)> choose_;
  Coordinator coordinator_;
  absl::Duration now_;
  int newest_set_ = 1;
  int sets_added_ = 0;
  int sets_removed_ = 0;
};

}  // namespace tutti::comm

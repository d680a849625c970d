#include "platform/api/routing/call_counters.h"

#include <utility>

namespace tutti::api {

CallCounters::CallCounters(const std::vector<Route>& routes) {
  const auto add = [this](std::string method, std::string pattern) {
    auto& of_route = *routes_.emplace_back(std::make_unique<OfRoute>());
    absl::MutexLock lock(&of_route.mutex);
    of_route.counts.method = std::move(method);
    of_route.counts.route = std::move(pattern);
  };
  for (const Route& route : routes) add(route.method, route.pattern);
  add("other", "other");
}

void CallCounters::Add(const http::AnsweredRequest& answered) {
  const auto kind = static_cast<size_t>(answered.kind);
  OfRoute& of_route =
      *(answered.kind < 0 || kind >= routes_.size() - 1 ? routes_.back() : routes_[kind]);
  absl::MutexLock lock(&of_route.mutex);
  ++of_route.counts.answers[answered.status];
  of_route.counts.times.Add(answered.time);
}

std::vector<CallCounts> CallCounters::Read() const {
  std::vector<CallCounts> counts;
  for (const auto& of_route : routes_) {
    absl::MutexLock lock(&of_route->mutex);
    if (!of_route->counts.answers.empty()) counts.push_back(of_route->counts);
  }
  return counts;
}

}  // namespace tutti::api

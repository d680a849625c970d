#include "platform/service/allocation/data_holders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/service/jobs/live_job.h"

namespace tutti::service {
namespace {

constexpr int kJobsOfSlice = 100;
// A job that has ended may yet deliver for longer; who wishes for its nodes does not wait for that.
constexpr absl::Duration kLeavesSoon = absl::Seconds(5);

std::set<std::string, std::less<>> ComputesWithCaches(const Engines& engines) {
  std::set<std::string, std::less<>> computes;
  for (const auto& [name, engine] : engines.clusters) {
    if (engine->traits().caches_by_node) computes.insert(name);
  }
  return computes;
}

// Returns what names the data that the job has fetched to its nodes, whatever version of them the
// store has by then. What is read from the store piece by piece does not stay.
std::set<std::string> DataOf(const spec::JobSpec& job) {
  std::set<std::string> data;
  for (const auto& [name, input] : job.inputs) {
    if (!input.place || input.mode == "direct") continue;
    data.insert(absl::StrCat(spec::StoreOf(*input.place), "\n", input.place->path));
  }
  return data;
}

}  // namespace

DataHolders::DataHolders(SharedState& state)
    : state_(state), computes_(ComputesWithCaches(state.engines)) {}

void DataHolders::ReadPast() {
  if (computes_.empty()) return;
  state_.decision_work.Do("data of nodes", [this] {
    int64_t before = ReadSome({.limit = kJobsOfSlice});
    for (int read = kJobsOfSlice; before != 0 && read < kMostPastJobs; read += kJobsOfSlice) {
      before = ReadSome({.limit = kJobsOfSlice, .before = before});
    }
  });
}

int64_t DataHolders::ReadSome(const store::JobFilter& which) {
  const auto jobs = state_.store->ListJobs(which);
  if (!jobs.ok()) spdlog::error("which nodes have which data: {}", jobs.status().ToString());
  if (!jobs.ok() || jobs->empty()) return 0;
  for (const store::JobRecord& record : *jobs) {
    if (state_.ending) return 0;
    const spec::JobSpec& spec = record.job.spec;
    const bool has_children = !spec.steps.empty() || spec.sweep.has_value();
    if (has_children) ReadSome({.limit = kJobsOfSlice, .parent = record.job.id});
    if (!has_children) ReadOne(record);
  }
  return jobs->back().job.sequence;
}

void DataHolders::ReadOne(const store::JobRecord& record) {
  const bool got_ready = record.started || record.last.state == store::JobState::kStarting;
  if (!got_ready || !IsOf(record.job.spec.compute)) return;
  const EventDetail detail = EventDetailFromJson(record.last.detail);
  if (!detail.placement) return;
  StateLock lock(state_);
  Note(record.job.spec, *detail.placement, --past_uses_);
}

void DataHolders::OnEvent(const store::Job& job, const store::Event& event,
                          const EventDetail& detail) {
  const bool ends = store::IsEnd(event.state);
  if (!ends && event.state != store::JobState::kStarting) return;
  if (!IsOf(job.spec.compute) || DataOf(job.spec).empty()) return;
  if (!detail.placement) return;
  if (!ends) return Note(job.spec, *detail.placement, ++uses_);
  const absl::Duration now = state_.clock->SinceBoot();
  for (const PlacedNode& node : detail.placement->nodes) {
    left_[{job.spec.compute, node.name}] = now;
  }
}

std::vector<std::string> DataHolders::BeingLeft(const std::string& compute,
                                                const std::vector<std::string>& nodes) const {
  const absl::Duration now = state_.clock->SinceBoot();
  std::vector<std::string> being_left;
  for (const std::string& node : nodes) {
    const auto left = left_.find({compute, node});
    if (left != left_.end() && now - left->second < kLeavesSoon) being_left.push_back(node);
  }
  return being_left;
}

void DataHolders::Note(const spec::JobSpec& job, const Placement& placement, int64_t use) {
  for (const std::string& name : DataOf(job)) {
    Data& data = data_[{job.compute, name}];
    data.last_use = std::max(data.last_use, use);
    for (const PlacedNode& node : placement.nodes) {
      data.nodes.insert(node.name);
      if (data.nodes.size() > kMostNodes) {
        data.nodes.erase(node.name == *data.nodes.begin() ? std::prev(data.nodes.end())
                                                          : data.nodes.begin());
      }
    }
    if (data_.size() > kMostData) ForgetLongestUnused();
  }
}

void DataHolders::ForgetLongestUnused() {
  data_.erase(std::min_element(data_.begin(), data_.end(), [](const auto& a, const auto& b) {
    return a.second.last_use < b.second.last_use;
  }));
}

std::vector<std::string> DataHolders::NodesFor(const spec::JobSpec& job,
                                               const std::vector<std::string>& avoid) const {
  if (!IsOf(job.compute)) return {};
  std::map<std::string, int> counts;  // how much of the data a node has
  for (const std::string& name : DataOf(job)) {
    const auto data = data_.find({job.compute, name});
    if (data == data_.end()) continue;
    for (const std::string& node : data->second.nodes) ++counts[node];
  }
  for (const std::string& node : avoid) counts.erase(node);
  if (counts.empty() || static_cast<int>(counts.size()) < job.instance_count) return {};
  std::vector<int> sorted;
  for (const auto& [node, count] : counts) sorted.push_back(count);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const int least = sorted[std::max(job.instance_count, 1) - 1];
  std::vector<std::string> nodes;
  for (const auto& [node, count] : counts) {
    if (count >= least) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace tutti::service

#include "platform/client/top/live_view.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace tutti::client {
namespace {

constexpr char kPlaced[] = "Preparing,Provisioning,Starting,Running,Finalizing";
constexpr int kMostPlaced = 1000, kMostQueued = 200;
constexpr int kPoints = 60;  // of a job's course

// Returns whether all calls would fail now.
bool IsOfTheService(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status) || absl::IsUnauthenticated(status);
}

bool HasProcesses(const JobView& job) {
  return job.node_count > 0 &&
         (job.state == "Starting" || job.state == "Running" || job.state == "Finalizing");
}

// Steps of pipelines and trials of sweeps are in no list: their nodes name them.
absl::Status AddChildren(ServiceClient& service, LiveView& all) {
  std::set<std::string> known;
  for (const JobView& job : all.jobs) known.insert(job.id);
  size_t asked = 0;
  for (const NodeView& node : all.nodes.nodes) {
    for (const std::string& id : node.jobs) {
      if (asked == kMostAskedJobs || !known.insert(id).second) continue;
      ++asked;
      const auto text = service.Job(id);
      if (IsOfTheService(text.status())) return text.status();
      if (!text.ok()) continue;  // has ended and gone meanwhile
      TUTTI_ASSIGN_OR_RETURN(JobView job, Parse<JobView>(*text));
      if (!job.ended_already()) all.jobs.push_back(std::move(job));
    }
  }
  return absl::OkStatus();
}

void AddOthers(std::vector<JobView> others, std::vector<JobView>& jobs) {
  std::set<std::string> known;
  for (const JobView& job : jobs) known.insert(job.id);
  for (JobView& job : others) {
    if (known.insert(job.id).second) jobs.push_back(std::move(job));
  }
}

absl::Status AskForUsage(ServiceClient& service, const std::string& id, int points,
                         LiveView& view) {
  const auto text = service.Usage(id, -1, points);
  if (IsOfTheService(text.status())) return text.status();
  if (!text.ok()) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(JobUsageView usage, ParseUsage(*text));
  view.usage[id] = {absl::Now(), std::move(usage)};
  return absl::OkStatus();
}

absl::Status AddUsage(ServiceClient& service, const LiveView& before, LiveView& all) {
  std::vector<std::pair<absl::Time, std::string>> jobs;  // by when they were asked
  for (const JobView& job : all.jobs) {
    if (!HasProcesses(job)) continue;
    const auto kept = before.usage.find(job.id);
    if (kept != before.usage.end()) all.usage.insert(*kept);
    jobs.emplace_back(kept == before.usage.end() ? absl::InfinitePast() : kept->second.time,
                      job.id);
  }
  std::sort(jobs.begin(), jobs.end());
  if (jobs.size() > kMostAskedJobs) jobs.resize(kMostAskedJobs);
  for (const auto& [time, id] : jobs) {
    TUTTI_RETURN_IF_ERROR(AskForUsage(service, id, /*points=*/1, all));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Duration LiveView::AgeOfUsage(const std::string& id) const {
  const auto found = usage.find(id);
  if (found == usage.end()) return absl::ZeroDuration();
  return std::max(time - found->second.time, absl::ZeroDuration());
}

Use LiveView::UseOfJob(const std::string& id) const {
  const auto found = usage.find(id);
  UseSum sum;
  if (found == usage.end()) return sum.Sum();
  for (const NodeUsageView& node : found->second.usage.nodes) {
    sum.Add(UseOf(node, found->second.usage.live, AgeOfUsage(id)));
  }
  return sum.Sum();
}

Use LiveView::UseOfNode(const NodeView& node) const {
  UseSum sum;
  for (const std::string& id : node.jobs) {
    Use of_job;
    if (const auto found = usage.find(id); found != usage.end()) {
      for (const NodeUsageView& place : found->second.usage.nodes) {
        if (place.name != node.name) continue;
        of_job = UseOf(place, found->second.usage.live, AgeOfUsage(id));
      }
    }
    sum.Add(of_job);
  }
  return sum.OfOneMachine();
}

absl::StatusOr<LiveView> AskForAll(ServiceClient& service, const LiveView& before) {
  LiveView all;
  TUTTI_ASSIGN_OR_RETURN(const std::string nodes, service.Nodes());
  TUTTI_ASSIGN_OR_RETURN(all.nodes, Parse<NodesView>(nodes));
  // A job that starts between the two calls is in both.
  TUTTI_ASSIGN_OR_RETURN(const std::string queued, service.Summaries("Queued", kMostQueued));
  TUTTI_ASSIGN_OR_RETURN(JobListView waiting, Parse<JobListView>(queued));
  TUTTI_ASSIGN_OR_RETURN(const std::string placed, service.Summaries(kPlaced, kMostPlaced));
  TUTTI_ASSIGN_OR_RETURN(JobListView running, Parse<JobListView>(placed));
  all.jobs = std::move(running.jobs);
  all.has_more_jobs = all.jobs.size() >= kMostPlaced || waiting.jobs.size() >= kMostQueued;
  AddOthers(std::move(waiting.jobs), all.jobs);
  TUTTI_RETURN_IF_ERROR(AddChildren(service, all));
  TUTTI_RETURN_IF_ERROR(AddUsage(service, before, all));
  all.time = absl::Now();
  return all;
}

absl::StatusOr<LiveView> AskForJob(ServiceClient& service, const std::string& id) {
  LiveView one;
  one.open = id;
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Job(id));
  TUTTI_ASSIGN_OR_RETURN(one.job, Parse<JobView>(text));
  TUTTI_RETURN_IF_ERROR(AskForUsage(service, id, kPoints, one));
  one.time = absl::Now();
  return one;
}

}  // namespace tutti::client

// Jobs of engines that schedule for themselves. Such a job is Queued as long as it waits there; the
// service hands it over as often as it starts anew, which an engine does not mind, and writes
// Provisioning once it is told the nodes.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

// Ports that jobs which share a node do not share, below those that the system gives out.
constexpr int kFirstPort = 10'000;
constexpr int kPairs = 11'000;

Placement PlaceOnCluster(const store::Job& job, std::string allocation,
                         const std::vector<engine::Node>& nodes) {
  const int port = kFirstPort + 2 * static_cast<int>(job.sequence % kPairs);
  Placement placement = Place(job.spec, std::move(allocation), nodes, port);
  const bool mpi = job.spec.distribution.kind == spec::DistributionKind::kMpi;
  if (mpi && nodes.size() > 1) placement.start_port = port + 1;
  if (job.spec.distribution.kind == spec::DistributionKind::kRay) {
    const int asked = job.spec.distribution.ray.port;
    placement.start_port = asked > 0 ? asked : port + 1;
  }
  return placement;
}

}  // namespace

std::string ServiceCore::WhyOutOfReach(const std::string& compute) const {
  if (EngineOf(compute) != nullptr) return "";
  if (const auto why = engines_.broken.find(compute); why != engines_.broken.end()) {
    return absl::StrCat("compute ", compute, " cannot be used: ", why->second,
                        "; repair it and start the service anew");
  }
  return absl::StrCat("site.yml has no compute ", compute,
                      ": put it back and start the service anew");
}

void ServiceCore::HandOver(Effects& effects) {
  for (const auto& [id, live] : live_) {
    const store::Job& job = live->record.job;
    if (live->placed != nullptr || live->flow != nullptr || live->handed_over ||
        job.spec.compute == "local") {
      continue;
    }
    if (const std::string why = WhyOutOfReach(job.spec.compute); !why.empty()) {
      live->waits_for = absl::StrCat("waits: ", why);
      continue;
    }
    live->waits_for = "is being handed to the cluster";
    // Stand-ins, until it is known which nodes they are.
    std::vector<engine::Node> nodes(job.spec.instance_count);
    for (size_t i = 0; i < nodes.size(); ++i) {
      nodes[i] = {.name = absl::StrCat("node-", i), .address = "0.0.0.0", .directory = "/"};
    }
    const Placement placement = PlaceOnCluster(job, AllocationOf(*live), nodes);
    effects.starts.push_back(
        {.compute = job.spec.compute, .allocation = AllocationFor(*live, placement)});
  }
}

void ServiceCore::ObservedQueued(LiveJob& job, const engine::AllocationState& state) {
  if (state.waits) {
    job.waits_for = state.reason;
    job.expected_start = state.expected_start;
    return;
  }
  const std::string about = absl::StrCat("job ", job.record.job.id, " cannot be placed");
  if (!state.nodes.empty()) {
    const absl::Status placed = PlaceOn(job, state);
    if (placed.ok()) ForgetComplaintsOf(job.record.job.id);  // also that it was not handed over
    Complain(about, placed, {.job = job.record.job.id});
    return;
  }
  // Over before it had a node.
  const std::string why = state.reason.empty() ? "the cluster has dropped it" : state.reason;
  const Step end{.state = store::JobState::kFailed,
                 .reason = why,
                 .cause = Cause::kFailure,
                 .lost_node = state.lost};
  if (MayBeginAgain(job, end)) {
    Complain(about, BeginAgain(job, why), {.job = job.record.job.id});
    return;
  }
  const absl::Status written = Append(job, end);
  Complain(about, written, {.job = job.record.job.id});
  if (written.ok()) EndLive(job);
}

absl::Status ServiceCore::PlaceOn(LiveJob& job, const engine::AllocationState& state) {
  const store::Job& fixed = job.record.job;
  TUTTI_ASSIGN_OR_RETURN(job.placed,
                         RebuildGang(fixed.id, PlaceOnCluster(fixed, state.id, state.nodes)));
  std::vector<std::string> names;
  for (const engine::Node& node : state.nodes) names.push_back(node.name);
  const absl::Status written = Append(
      job,
      {store::JobState::kProvisioning, absl::StrCat("starting on ", absl::StrJoin(names, ", "))});
  if (!written.ok()) {
    job.placed.reset();
    return written;
  }
  job.placed->started = true;
  placed_.insert(&job);
  return absl::OkStatus();
}

bool ServiceCore::IsBeingPlaced(absl::string_view allocation) {
  const LiveJob* const job = LiveJobOf(allocation);
  if (job == nullptr || job->placed != nullptr) return false;
  const std::string& compute = job->record.job.spec.compute;
  if (compute == "local") return false;
  engine::Engine* const engine = EngineOf(compute);
  if (engine != nullptr) engine->Refresh();
  return true;
}

}  // namespace tutti::service

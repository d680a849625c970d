// Placement says where a job runs: it is decided once, written with the job's Provisioning event
// before anything is started, and carried in the detail of every later event. The launch plans
// follow from it, so that the same allocation is started with the same plans after a crash. Plain
// values; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/engine/engine.h"
#include "platform/service/attempt/free_port.h"
#include "platform/store/store.h"

namespace tutti::service {

struct PlacedNode {
  std::string name;
  std::string address;
  std::string directory;  // the engine's scratch folder of the node
  int64_t memory_bytes = 0;
  int first_rank = 0;
  int process_count = 0;
  // The processors and GPUs of a job that has a share of the node, as in spec::LaunchPlan.
  std::vector<int> cores = {};
  std::vector<std::string> gpus = {};
};

struct Placement {
  // "JOB.SEQUENCE", of later attempts "JOB.SEQUENCE-2": never used twice, also if the name is
  std::string allocation;
  std::vector<PlacedNode> nodes;
  int master_port = 0;
  int start_port = 0;            // as in spec::LaunchPlan
  std::string boot_id;           // likewise
  std::vector<FreePort> claims;  // on the ports, of the service that chose them alone
};

// Places ranks in node order: processes per instance on each node, or TensorFlow's tasks spread
// evenly, the first nodes taking one more.
Placement Place(const spec::JobSpec& spec, std::string allocation,
                const std::vector<engine::Node>& nodes, int master_port);

// Reads from the allocation's id whose it is: "JOB.17" and "JOB.17-2" are of JOB. "" if it is no
// such id.
std::string JobOfAllocation(absl::string_view allocation);
// Returns the number of the attempt: 1, and 2 of "JOB.17-2".
int AttemptOf(absl::string_view allocation);

// Writes it as JSON text, for an event's detail.
std::string ToJson(const Placement& placement);
absl::StatusOr<Placement> PlacementFromJson(absl::string_view text);

// Returns the plan as far as the nodes share it, and what is each one's own.
spec::LaunchPlan SharedPlanOf(const store::Job& job, const Placement& placement,
                              const std::filesystem::path& service_file, absl::Duration grace);
std::vector<spec::NodePart> NodePartsOf(const Placement& placement);

}  // namespace tutti::service

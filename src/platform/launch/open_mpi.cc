#include "platform/launch/open_mpi.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/machine.h"
#include "platform/launch/launch_programs.h"

namespace tutti::launch {
namespace {

absl::string_view FirstLabel(absl::string_view name) { return name.substr(0, name.find('.')); }

// Virtual nodes live on loopback addresses, which Open MPI leaves out unless it is told to.
bool OnLoopback(const spec::LaunchPlan& plan) {
  return std::all_of(plan.nodes.begin(), plan.nodes.end(), [](const spec::PlanNode& node) {
    return absl::StartsWith(node.address, "127.");
  });
}

bool SaysWhichRank(absl::string_view name) {
  static constexpr std::array<absl::string_view, 7> kNames = {"RANK",
                                                              "LOCAL_RANK",
                                                              "ROLE_RANK",
                                                              "AZUREML_PROCESS_NAME",
                                                              "AZ_BATCHAI_TASK_INDEX",
                                                              "TF_CONFIG",
                                                              "TUTTI_METRICS_FILE"};
  static constexpr std::array<absl::string_view, 4> kPrefixes = {"OMPI_COMM_WORLD_", "HOROVOD_",
                                                                 "SLURM_", "PMI"};
  return std::count(kNames.begin(), kNames.end(), name) > 0 ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace

std::string MpiWish(const spec::LaunchPlan& plan) {
  const auto set = plan.environment_variables.find(kMpiVariable);
  return set == plan.environment_variables.end() ? "" : set->second;
}

bool WantsMpi(const spec::LaunchPlan& plan) {
  return plan.distribution.kind == spec::DistributionKind::kMpi && plan.WorldSize() > 1 &&
         plan.environment.image.empty() &&  // its Open MPI is the image's
         (plan.nodes.size() == 1 || plan.start_port > 0) && MpiWish(plan) != "direct";
}

std::string FindOpenMpi(const spec::LaunchPlan& plan, const Variables& variables) {
  const bool daemon = base::FindProgram("orted", variables).ok();
  const bool alone = plan.nodes.size() == 1;
  const bool own_name = FirstLabel(base::HostName()) == FirstLabel(plan.node().name);
  return daemon && (alone || own_name) ? base::FindProgram("orterun", variables).value_or("") : "";
}

std::vector<std::string> MpirunCommand(const spec::LaunchPlan& plan, const std::string& mpirun) {
  std::vector<std::string> command = {mpirun};
  const auto set = [&command](absl::string_view name, absl::string_view value) {
    command.insert(command.end(), {"--mca", std::string(name), std::string(value)});
  };
  set("plm", "rsh");
  // By name: every daemon looks for it too, and one that does not find it crashes (4.1.4).
  set("plm_rsh_agent", absl::StrCat(kLauncherLink, " ", kAgentProgram));
  set("plm_rsh_no_tree_spawn", "1");        // only the first node's launcher reaches the others
  set("orte_leave_session_attached", "1");  // a daemon stays below the launcher that started it
  if (OnLoopback(plan)) {
    set("oob_tcp_if_include", "lo");
    set("btl_tcp_if_include", "lo");
  }
  std::vector<std::string> hosts;
  for (const spec::PlanNode& node : plan.nodes) {
    const bool alone = plan.nodes.size() == 1;
    hosts.push_back(absl::StrCat(alone ? "localhost" : node.name, ":", node.process_count));
  }
  // A folder that all nodes have: the job's may have another path on each, and ranks are told
  // theirs.
  command.insert(command.end(), {"--wdir", "/"});
  // Ranks in node order, as the plan has them. The node's processors are the launcher's to bind to.
  command.insert(command.end(), {"--host", absl::StrJoin(hosts, ","), "-np",
                                 absl::StrCat(plan.WorldSize()), "--map-by", "slot", "--rank-by",
                                 "slot", "--bind-to", "none", kLauncherLink, kRankProgram});
  return command;
}

Variables StarterEnvironment(const spec::LaunchPlan& plan, const NodeFacts& facts,
                             const std::string& door, const std::string& links) {
  Variables variables = EnvironmentOf(plan, 0, facts);
  std::erase_if(variables, [](const auto& entry) { return SaysWhichRank(entry.first); });
  variables[kDoorVariable] = door;
  std::string& path = variables["PATH"];
  path = absl::StrCat(links, path.empty() ? "" : ":", path);
  if (::geteuid() == 0) {
    variables["OMPI_ALLOW_RUN_AS_ROOT"] = variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
  return variables;
}

}  // namespace tutti::launch

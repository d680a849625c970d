#include "platform/launch/mpi/open_mpi.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "platform/launch/node/program_names.h"

namespace tutti::launch {
namespace {

// These are the starters of ranks and their daemons: Open MPI's own up to 4.1, PRRTE's from 5 on.
constexpr std::array<std::pair<absl::string_view, absl::string_view>, 2> kStarters = {
    {{"orterun", "orted"}, {"prterun", "prted"}}};

// The starter of MPICH and of Intel MPI.
constexpr char kHydra[] = "mpiexec.hydra";

absl::string_view FirstLabel(absl::string_view name) { return name.substr(0, name.find('.')); }

bool GoesByAnotherName(const spec::LaunchPlan& plan) {
  return plan.nodes.size() > 1 && FirstLabel(base::HostName()) != FirstLabel(plan.node().name);
}

// Virtual nodes live on loopback addresses, which Open MPI leaves out unless it is told to.
bool OnLoopback(const spec::LaunchPlan& plan) {
  return std::all_of(plan.nodes.begin(), plan.nodes.end(), [](const spec::PlanNode& node) {
    return absl::StartsWith(node.address, "127.");
  });
}

// Daemons are started by the launchers, of which only the first node's reaches the others, and stay
// below the launcher that started them.
constexpr absl::string_view kOrteOptions =
    "--mca plm rsh --mca plm_rsh_no_tree_spawn 1 --mca orte_leave_session_attached 1 "
    "--mca plm_rsh_agent";
constexpr absl::string_view kPrrteOptions =
    "--personality ompi --prtemca plm ssh --prtemca plm_ssh_no_tree_spawn 1 "
    "--leave-session-attached --prtemca plm_ssh_agent";

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

bool IsHydra(absl::string_view program) { return absl::EndsWith(program, kHydra); }

// The path of the first starter in PATH, Open MPI's with its daemon or hydra; or "".
std::string FirstStarter(const Variables& variables) {
  const auto path = variables.find("PATH");
  if (path == variables.end()) return "";
  for (const absl::string_view folder : absl::StrSplit(path->second, ':')) {
    const Variables here = {{"PATH", std::string(folder)}};
    for (const auto& [starter, daemon] : kStarters) {
      if (!base::FindProgram(daemon, here).ok()) continue;
      if (auto found = base::FindProgram(starter, here); found.ok()) return *std::move(found);
    }
    if (auto found = base::FindProgram(kHydra, here); found.ok()) return *std::move(found);
  }
  return "";
}

// Open MPI of a wheel lies elsewhere than where it was built for. Its mpirun, which stands before
// its prterun, tells it where; so do these variables.
Variables WhereItLies(const std::string& mpirun) {
  std::error_code error;
  const auto prefix = std::filesystem::canonical(mpirun, error).parent_path().parent_path();
  if (error || !base::IsPythonEnvironment(prefix)) return {};
  return {{"OPAL_PREFIX", prefix}, {"PMIX_PREFIX", prefix}, {"PRTE_PREFIX", prefix}};
}

}  // namespace

std::string MpiSettingOf(const spec::LaunchPlan& plan) {
  const auto set = plan.environment_variables.find(kMpiVariable);
  return set == plan.environment_variables.end() ? "" : set->second;
}

bool WantsMpi(const spec::LaunchPlan& plan) {
  return spec::DriverOf(plan.distribution).is_mpi && plan.WorldSize() > 1 &&
         (plan.nodes.size() == 1 || plan.start_port > 0) && MpiSettingOf(plan) != "direct";
}

std::string FindOpenMpi(const spec::LaunchPlan& plan, const Variables& variables) {
  if (!plan.environment.image.empty() || MpiSettingOf(plan) == "pmi" || GoesByAnotherName(plan)) {
    return "";
  }
  std::string first = FirstStarter(variables);
  return IsHydra(first) ? "" : first;
}

std::string WhyNoOpenMpi(const spec::LaunchPlan& plan, const Variables& variables) {
  if (!plan.environment.image.empty()) {
    return "tutti starts no mpirun in an image: take MPICH or Intel MPI in it, or an environment "
           "of packages";
  }
  if (MpiSettingOf(plan) == "pmi") {
    return absl::StrCat(kMpiVariable, " is pmi, which is not for Open MPI: leave it out");
  }
  if (GoesByAnotherName(plan)) {
    return absl::StrCat("its mpirun needs nodes that call themselves by their names, and ",
                        plan.node().name, " is ", base::HostName());
  }
  const std::string first = FirstStarter(variables);
  if (IsHydra(first)) {
    return absl::StrCat("the first mpirun in PATH is MPICH's or Intel MPI's (", first,
                        "): let the program load that MPI's library, or put Open MPI's mpirun "
                        "before it");
  }
  return absl::StrCat(
      first.empty() ? "PATH has no mpirun" : "not every node has an mpirun",
      " of Open MPI with its daemon (orterun and orted, prterun and prted): install "
      "it on every node (apt-get install openmpi-bin)");
}

std::vector<std::string> MpirunCommand(const spec::LaunchPlan& plan, const std::string& mpirun) {
  const bool is_prrte = absl::EndsWith(mpirun, "/prterun");
  std::vector<std::string> command = absl::StrSplit(is_prrte ? kPrrteOptions : kOrteOptions, ' ');
  command.insert(command.begin(), mpirun);
  // The agent goes by name: every daemon looks for it too, and one that does not find it crashes
  // (4.1.4).
  command.push_back(absl::StrCat(kLauncherLink, " ", kAgentProgram));
  if (OnLoopback(plan)) {
    command.insert(command.end(), {"--mca", "btl_tcp_if_include", "lo"});
    // PRRTE never talks over it.
    if (!is_prrte) command.insert(command.end(), {"--mca", "oob_tcp_if_include", "lo"});
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
                             const std::string& mpirun, const std::string& socket,
                             const std::string& links) {
  NodeFacts without_secrets = facts;  // which ranks are given by their launchers
  without_secrets.secrets.clear();
  Variables variables = EnvironmentOf(plan, 0, without_secrets);
  std::erase_if(variables, [](const auto& entry) { return SaysWhichRank(entry.first); });
  variables.merge(WhereItLies(mpirun));  // unless the job says where
  variables[kLauncherSocketVariable] = socket;
  std::string& path = variables["PATH"];
  path = absl::StrCat(links, path.empty() ? "" : ":", path);
  if (::geteuid() == 0) {
    for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"}) {
      variables[name] = variables[absl::StrCat(name, "_CONFIRM")] = "1";
    }
  }
  return variables;
}

}  // namespace tutti::launch

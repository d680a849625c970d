#include "platform/cluster/configuration.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/cluster/paths.h"

namespace tutti::cluster {
namespace {

std::vector<const HostFacts*> NodesOf(const Description& wanted,
                                      const std::vector<HostFacts>& facts) {
  std::vector<const HostFacts*> nodes;
  for (const std::string& host : wanted.nodes) {
    if (const HostFacts* node = FactsOf(facts, host)) nodes.push_back(node);
  }
  return nodes;
}

// Returns a model's name as a type of gres: "NVIDIA H100 80GB HBM3" is nvidia_h100_80gb_hbm3.
std::string GpuType(absl::string_view model) {
  std::string type = absl::AsciiStrToLower(model);
  std::replace_if(
      type.begin(), type.end(), [](unsigned char c) { return !absl::ascii_isalnum(c); }, '_');
  return type;
}

// Returns which GPUs are of which type: type -> minor numbers.
std::map<std::string, std::vector<int>> GpusByType(const std::vector<Gpu>& gpus) {
  std::map<std::string, std::vector<int>> types;
  for (const Gpu& gpu : gpus) types[GpuType(gpu.model)].push_back(gpu.minor);
  for (auto& [type, minors] : types) std::sort(minors.begin(), minors.end());
  return types;
}

std::string GresOf(const std::vector<Gpu>& gpus) {
  std::vector<std::string> parts;
  for (const auto& [type, minors] : GpusByType(gpus)) {
    parts.push_back(absl::StrCat("gpu:", type, ":", minors.size()));
  }
  return parts.empty() ? "" : absl::StrCat(" Gres=", absl::StrJoin(parts, ","));
}

std::string GresLines(const std::string& names, const std::vector<Gpu>& gpus) {
  std::string text;
  for (const auto& [type, minors] : GpusByType(gpus)) {
    absl::StrAppend(&text, "NodeName=", names, " Name=gpu Type=", type, " File=/dev/nvidia[",
                    absl::StrJoin(minors, ","), "]\n");
  }
  return text;
}

std::string NodeLine(const HostFacts& node) {
  return absl::StrCat(
      "NodeName=", node.name, " NodeAddr=", node.address, " Sockets=", node.sockets,
      " CoresPerSocket=", node.cores_per_socket, " ThreadsPerCore=", node.threads_per_core,
      " RealMemory=", UsableMemory(node.memory_mib), GresOf(node.gpus), " State=UNKNOWN\n");
}

std::string AutoscaleLines(const Autoscale& scale) {
  std::string text =
      absl::StrCat("SuspendTime=", scale.idle_seconds, "\nSuspendTimeout=", scale.halt_seconds,
                   "\nResumeTimeout=", scale.boot_seconds,
                   "\nResumeRate=0\nSuspendRate=0\nResumeProgram=", kResumeProgram,
                   "\nSuspendProgram=", kSuspendProgram, "\nResumeFailProgram=", kSuspendProgram,
                   "\nPrivateData=cloud\nTreeWidth=65533\n");
  const std::string names = absl::StrJoin(scale.nodes, ",");
  absl::StrAppend(&text, "NodeName=", names, " Sockets=", scale.sockets,
                  " CoresPerSocket=", scale.cores_per_socket,
                  " ThreadsPerCore=", scale.threads_per_core,
                  " RealMemory=", UsableMemory(scale.memory_mib), GresOf(scale.gpus),
                  " Weight=10 State=CLOUD\n");
  return text;
}

// Returns the line with the nodes that power saving leaves alone.
std::string ExceptionsLine(const Description& wanted, const std::vector<HostFacts>& facts) {
  std::vector<std::string> names;
  for (const HostFacts* node : NodesOf(wanted, facts)) names.push_back(node->name);
  for (int i = 0; i < wanted.autoscale->min; ++i) names.push_back(wanted.autoscale->nodes[i]);
  return names.empty() ? "" : absl::StrCat("SuspendExcNodes=", absl::StrJoin(names, ","), "\n");
}

std::string AccountingLines(const Description& wanted, const HostFacts& controller) {
  if (!wanted.accounting) {
    return "JobCompType=jobcomp/filetxt\nJobCompLoc=/var/log/slurm/jobcomp.log\n";
  }
  return absl::StrCat("AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=",
                      controller.address, "\nAccountingStoreFlags=job_comment\n");
}

// A job that asks for no memory gets its processors' share; without this, all of the node's.
std::string MemoryLine(const Description& wanted, const std::vector<HostFacts>& facts) {
  int64_t least = INT64_MAX;
  for (const HostFacts* node : NodesOf(wanted, facts)) {
    least = std::min(least, UsableMemory(node->memory_mib) / node->cpus());
  }
  if (const auto& scale = wanted.autoscale) {
    const int cpus = scale->sockets * scale->cores_per_socket * scale->threads_per_core;
    least = std::min(least, UsableMemory(scale->memory_mib) / cpus);
  }
  return absl::StrCat("DefMemPerCPU=", std::max<int64_t>(1, least), "\n");
}

// These lines are the same in every cluster.
constexpr absl::string_view kCommon = R"(SlurmUser=slurm
AuthType=auth/munge
AuthInfo=cred_expire=30
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmctldPidFile=/run/slurmctld.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdSpoolDir=/var/spool/slurmd
SlurmdPidFile=/run/slurmd.pid
SlurmdLogFile=/var/log/slurm/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
SlurmdTimeout=60
MpiDefault=none
PropagateResourceLimitsExcept=MEMLOCK
)";

}  // namespace

const HostFacts* FactsOf(const std::vector<HostFacts>& facts, const std::string& host) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const HostFacts& one) { return one.host == host; });
  return found == facts.end() ? nullptr : &*found;
}

std::string UsableCgroup(const HostFacts& host) {
  return host.cgroup == "v2" && !host.systemd ? "" : host.cgroup;
}

std::string CommonCgroup(const Description& wanted, const std::vector<HostFacts>& facts) {
  std::set<std::string> found;
  for (const HostFacts* node : NodesOf(wanted, facts)) found.insert(UsableCgroup(*node));
  if (wanted.autoscale) found.insert(wanted.autoscale->cgroup);
  return found.size() == 1 ? *found.begin() : "";
}

int64_t UsableMemory(int64_t memory_mib) {
  return std::max<int64_t>(1, memory_mib - memory_mib / 32 - 64);
}

std::string SlurmConf(const Description& wanted, const std::vector<HostFacts>& facts) {
  const HostFacts& controller = *FactsOf(facts, wanted.controller);
  const std::vector<const HostFacts*> nodes = NodesOf(wanted, facts);
  const bool cgroups = !CommonCgroup(wanted, facts).empty();
  std::string text = absl::StrCat(
      kMark, "\nClusterName=", wanted.name, "\nSlurmctldHost=", controller.name, "(",
      controller.address, ")\n", kCommon, "SlurmctldParameters=enable_configless",
      wanted.autoscale ? ",idle_on_node_suspend,cloud_reg_addrs" : "", "\nProctrackType=proctrack/",
      cgroups ? "cgroup" : "linuxproc", "\nTaskPlugin=task/", cgroups ? "cgroup" : "none", "\n");
  if (std::any_of(nodes.begin(), nodes.end(), [](auto* node) { return node->fewer_cpus; })) {
    absl::StrAppend(&text, "SlurmdParameters=config_overrides\n");
  }
  if (std::any_of(nodes.begin(), nodes.end(), [](auto* node) { return !node->gpus.empty(); }) ||
      (wanted.autoscale && !wanted.autoscale->gpus.empty())) {
    absl::StrAppend(&text, "GresTypes=gpu\n");
  }
  absl::StrAppend(&text, MemoryLine(wanted, facts), AccountingLines(wanted, controller));
  for (const HostFacts* node : nodes) absl::StrAppend(&text, NodeLine(*node));
  if (wanted.autoscale) {
    absl::StrAppend(&text, AutoscaleLines(*wanted.autoscale), ExceptionsLine(wanted, facts));
  }
  absl::StrAppend(&text, "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n");
  return text;
}

std::string CgroupConf(const Description& wanted, const std::vector<HostFacts>& facts) {
  const std::string cgroup = CommonCgroup(wanted, facts);
  if (cgroup.empty()) return absl::StrCat(kMark, "\nCgroupPlugin=cgroup/v1\n");  // is not used
  return absl::StrCat(kMark, "\nCgroupPlugin=cgroup/", cgroup,
                      "\nConstrainCores=yes\nConstrainRAMSpace=yes\nConstrainDevices=yes\n");
}

std::string GresConf(const Description& wanted, const std::vector<HostFacts>& facts) {
  std::string text = absl::StrCat(kMark, "\n");
  for (const HostFacts* node : NodesOf(wanted, facts)) {
    absl::StrAppend(&text, GresLines(node->name, node->gpus));
  }
  if (const auto& scale = wanted.autoscale) {
    absl::StrAppend(&text, GresLines(absl::StrJoin(scale->nodes, ","), scale->gpus));
  }
  return text;
}

std::string SlurmdbdConf(const AccountingDatabase& database, const HostFacts& controller) {
  return absl::StrCat(kMark, "\nDbdHost=", controller.name, "\nDbdAddr=", controller.address,
                      "\nSlurmUser=slurm\nAuthType=auth/munge\nPidFile=/run/slurmdbd.pid\n"
                      "LogFile=/var/log/slurm/slurmdbd.log\n"
                      "StorageType=accounting_storage/mysql\nStorageHost=",
                      database.host, "\nStoragePort=", database.port,
                      "\nStorageLoc=", database.database, "\nStorageUser=", database.user,
                      "\nStoragePass=\"", database.password, "\"\n");
}

}  // namespace tutti::cluster

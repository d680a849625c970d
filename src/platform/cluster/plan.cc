#include "platform/cluster/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/cluster/configuration.h"
#include "platform/cluster/daemons.h"
#include "platform/cluster/mounts/mount_steps.h"
#include "platform/cluster/paths.h"
#include "platform/cluster/power_program.h"

namespace tutti::cluster {
namespace {

bool IsNode(const Description& wanted, const HostFacts& host) {
  return std::find(wanted.nodes.begin(), wanted.nodes.end(), host.host) != wanted.nodes.end();
}

bool IsController(const Description& wanted, const HostFacts& host) {
  return wanted.controller == host.host;
}

bool Holds(const HostFacts& host, absl::string_view file, absl::string_view content) {
  const auto found = host.files.find(std::string(file));
  return found != host.files.end() && found->second == base::Hex(base::Sha256Of(content));
}

// Debian's packages of what the host lacks.
std::vector<std::string> MissingPackages(const Description& wanted, const HostFacts& host) {
  std::vector<std::string> missing;
  const auto need = [&](const char* command, const char* package) {
    if (!host.commands.contains(command)) missing.push_back(package);
  };
  need("munged", "munge");
  need("srun", "slurm-client");
  if (IsController(wanted, host)) need("slurmctld", "slurmctld");
  if (IsController(wanted, host) && wanted.accounting) need("slurmdbd", "slurmdbd");
  if (IsNode(wanted, host)) need("slurmd", "slurmd");
  if (IsNode(wanted, host) && !wanted.mounts.empty()) need("mount.nfs4", "nfs-common");
  return missing;
}

bool HoldsKey(const Description& wanted, const HostFacts& host) {
  return Holds(host, kMungeKey, wanted.munge_key);
}

// A munge key alone says nothing: Debian's package draws one when it is installed.
bool HasSlurm(const HostFacts& host) {
  return host.configured || std::any_of(host.running.begin(), host.running.end(),
                                        [](const auto& daemon) { return daemon != "munged"; });
}

absl::Status Against(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(reasons, "\n"));
}

std::vector<std::string> NamesOfAutoscale(const Description& wanted) {
  return wanted.autoscale ? wanted.autoscale->nodes : std::vector<std::string>();
}

// Returns why Slurm cannot go by the address at which it was reached from here; or "".
std::string AddressProblem(const HostFacts& host, bool alone) {
  if (absl::StrContains(host.address, ':')) {
    return absl::StrCat(host.host, " was reached at ", host.address,
                        ": Slurm is set up over IPv4 here; name the host by its IPv4 address");
  }
  if (alone || !absl::StartsWith(host.address, "127.")) return "";
  return absl::StrCat(host.host, " was reached at ", host.address,
                      ", where no other host reaches it: take its name out of the line ",
                      host.address, " of this machine's /etc/hosts, or name it by its address");
}

absl::Status CheckHosts(const Description& wanted, const std::vector<HostFacts>& facts) {
  std::vector<std::string> against;
  const bool alone = facts.size() == 1 && !wanted.autoscale;
  if (wanted.nodes.empty() && !wanted.autoscale) {
    against.push_back("the cluster would have no node; `tutti cluster delete` ends it");
  }
  std::map<std::string, std::string> names;
  for (const HostFacts& host : facts) {
    if (const auto [other, fresh] = names.emplace(host.name, host.host); !fresh) {
      against.push_back(absl::StrCat(host.host, " and ", other->second, " both call themselves ",
                                     host.name,
                                     ": name each host once, and give machines names "
                                     "of their own (hostnamectl set-hostname)"));
    }
    if (std::string reason = AddressProblem(host, alone); !reason.empty()) {
      against.push_back(std::move(reason));
    }
    if (host.foreign_configuration) {
      against.push_back(absl::StrCat(host.host, " has a ", kSlurmConf,
                                     " that tutti did not make: this machine belongs to another "
                                     "cluster; move the file away if it does not"));
    }
    if (host.files.contains(std::string(kMungeKey)) && !HoldsKey(wanted, host) && HasSlurm(host)) {
      against.push_back(absl::StrCat(
          host.host,
          " has Slurm and another munge key than this cluster's: this machine belongs to "
          "another cluster; end that one first (`tutti cluster delete` where it was "
          "made), or remove Slurm's daemons and configuration by hand"));
    }
    if (host.gpus_hang) {
      against.push_back(absl::StrCat(
          host.host,
          " has a GPU that does not answer (nvidia-smi -q hangs), so that its GPUs are not known: "
          "reboot it, or take it out by `tutti cluster remove-node ",
          host.host, "`"));
    }
    if (IsNode(wanted, host)) {
      for (std::string& reason : MountProblems(wanted.mounts, host)) {
        against.push_back(std::move(reason));
      }
    }
    const std::vector<std::string> missing = MissingPackages(wanted, host);
    if (!missing.empty() && !host.has_apt) {
      against.push_back(absl::StrCat(host.host, " runs ", host.system,
                                     ", where tutti installs nothing: install there what ",
                                     absl::StrJoin(missing, ", "), " are on Debian"));
    }
  }
  for (const std::string& node : NamesOfAutoscale(wanted)) {
    const auto [other, fresh] = names.emplace(node, "autoscale");
    if (fresh) continue;
    against.push_back(absl::StrCat("autoscale's node ", node, " is named twice (", other->second,
                                   "): name each node once, or take it out of --nodes of `tutti "
                                   "cluster autoscale` first"));
  }
  return Against(against);
}

void AddPackages(const Description& wanted, const HostFacts& host, Plan& plan) {
  const std::vector<std::string> missing = MissingPackages(wanted, host);
  if (missing.empty()) return;
  plan.steps.push_back({Stage::kPackages, host.host,
                        absl::StrCat("install ", absl::StrJoin(missing, ", ")),
                        absl::StrCat("apt-get update -qq </dev/null\n", InstallText(missing, ""))});
}

void AddKey(const Description& wanted, const HostFacts& host, Plan& plan) {
  const bool held = HoldsKey(wanted, host);
  if (held && host.running.contains("munged")) return;
  std::string script = StopText(host, "munged");
  if (!held) {  // what the probe did not see, a package may have made since
    absl::StrAppend(&script, "[ ! -f ", kMungeKey, " ] || cp -p --backup=numbered ", kMungeKey, " ",
                    kMungeKey, ".before-tutti\n",
                    WriteFileText(kMungeKey, wanted.munge_key, "0400", "munge:munge"));
  }
  absl::StrAppend(&script, StartText(host, "munged"), "munge -n | unmunge >/dev/null\n");
  plan.steps.push_back(
      {Stage::kKey, host.host, held ? "start munge" : "give it the cluster's munge key", script});
}

struct File {
  absl::string_view path;
  std::string content;
  absl::string_view mode = "0644", owner = "root:root";
};

std::vector<File> ControllerFiles(const Description& wanted, const std::vector<HostFacts>& facts) {
  std::vector<File> files = {{kSlurmConf, SlurmConf(wanted, facts)},
                             {kCgroupConf, CgroupConf(wanted, facts)},
                             {kGresConf, GresConf(wanted, facts)}};
  if (!wanted.autoscale) return files;
  // The site's commands may hold secrets.
  files.push_back({kResumeProgram, ResumeProgram(*wanted.autoscale), "0750", "root:slurm"});
  files.push_back({kSuspendProgram, SuspendProgram(*wanted.autoscale), "0750", "root:slurm"});
  files.push_back({kKeepProgram, KeepProgram(*wanted.autoscale), "0750", "root:slurm"});
  return files;
}

// Stopped while its files change: what runs has read what is there.
void AddDaemon(Stage stage, const HostFacts& host, absl::string_view daemon,
               const std::vector<File>& files, absl::string_view before, Plan& plan) {
  std::vector<std::string> changed;
  std::string writes;
  for (const File& file : files) {
    if (Holds(host, file.path, file.content)) continue;
    changed.push_back(std::string(file.path.substr(file.path.rfind('/') + 1)));
    absl::StrAppend(&writes, WriteFileText(file.path, file.content, file.mode, file.owner));
  }
  const bool runs = host.running.contains(std::string(daemon));
  if (changed.empty() && runs) return;
  const std::string what = changed.empty()
                               ? absl::StrCat("start ", daemon)
                               : absl::StrCat("write ", absl::StrJoin(changed, ", "), "; ",
                                              runs ? "restart " : "start ", daemon);
  plan.steps.push_back(
      {stage, host.host, what,
       absl::StrCat(before, runs ? StopText(host, daemon) : "", writes, StartText(host, daemon))});
}

void AddController(const Description& wanted, const std::vector<HostFacts>& facts, Plan& plan) {
  const HostFacts& host = *FactsOf(facts, wanted.controller);
  const std::string folders = absl::StrCat(
      "install -d -o slurm -g slurm -m 0755 /var/lib/slurm /var/lib/slurm/slurmctld "
      "/var/log/slurm ",
      kPowerLogs, "\n");
  if (wanted.accounting) {
    AddDaemon(Stage::kDatabase, host, "slurmdbd",
              {{kSlurmdbdConf, SlurmdbdConf(*wanted.accounting, host), "0600", "slurm:slurm"}},
              folders, plan);
  }
  AddDaemon(Stage::kController, host, "slurmctld", ControllerFiles(wanted, facts), folders, plan);
}

// The mounts come before slurmd offers the node.
void AddMounts(const Description& wanted, const HostFacts& host, Plan& plan) {
  for (MountStep& step : MountSteps(wanted.mounts, host)) {
    plan.steps.push_back({Stage::kNodes, host.host, std::move(step.what), std::move(step.script)});
  }
}

// slurmd fetches the configuration from the controller when it starts; jobs outlive its restart.
void AddNode(const Description& wanted, const std::vector<HostFacts>& facts, const HostFacts& host,
             Plan& plan) {
  const HostFacts& controller = *FactsOf(facts, wanted.controller);
  std::vector<File> files = {
      {kSlurmdOptions,
       absl::StrCat(kMark, "\nSLURMD_OPTIONS=\"--conf-server ", controller.address, ":6817\"\n")}};
  if (host.systemd) {
    // It gives up if the controller, which may boot later, does not give it its configuration.
    files.push_back({kSlurmdUnit, absl::StrCat(kMark,
                                               "\n[Unit]\nConditionPathExists=\n"
                                               "[Service]\nRestart=on-failure\nRestartSec=5\n")});
  }
  const bool current = Holds(host, kFetchedSlurmConf, SlurmConf(wanted, facts)) &&
                       Holds(host, kFetchedCgroupConf, CgroupConf(wanted, facts)) &&
                       Holds(host, kFetchedGresConf, GresConf(wanted, facts));
  static constexpr absl::string_view kFolders = "mkdir -p /var/spool/slurmd /var/log/slurm\n";
  const size_t before = plan.steps.size();
  AddDaemon(Stage::kNodes, host, "slurmd", files, kFolders, plan);
  if (plan.steps.size() > before || current) return;
  plan.steps.push_back({Stage::kNodes, host.host, "restart slurmd with the new configuration",
                        absl::StrCat(StopText(host, "slurmd"), StartText(host, "slurmd"))});
}

// Returns which nodes have which cgroups: "none on a, b; v2 on c".
std::string CgroupsOfNodes(const Description& wanted, const std::vector<HostFacts>& facts) {
  std::map<std::string, std::vector<std::string>> of;
  for (const HostFacts& host : facts) {
    if (IsNode(wanted, host)) of[UsableCgroup(host)].push_back(host.host);
  }
  if (wanted.autoscale) of[wanted.autoscale->cgroup].push_back("nodes of autoscale");
  return absl::StrJoin(of, "; ", [](std::string* text, const auto& one) {
    absl::StrAppend(text, one.first.empty() ? "none" : one.first, " on ",
                    absl::StrJoin(one.second, ", "));
  });
}

std::string RemovalText(const Description& wanted, const HostFacts& host) {
  if (!HoldsKey(wanted, host)) return "";  // a host without Slurm: see CheckOwned
  std::string script;
  for (const absl::string_view daemon : {"slurmd", "slurmctld", "slurmdbd", "munged"}) {
    if (!host.running.contains(std::string(daemon))) continue;
    absl::StrAppend(&script, StopText(host, daemon));
    if (host.systemd) {
      absl::StrAppend(&script, "systemctl disable --quiet ", daemon == "munged" ? "munge" : daemon,
                      "\n");
    }
  }
  absl::StrAppend(&script, UnmountAllText(host));
  // The key last: it proves, should this be cut off, that the rest is this cluster's.
  for (const std::string& file : host.marked) absl::StrAppend(&script, "rm -f ", file, "\n");
  if (host.systemd) absl::StrAppend(&script, "systemctl daemon-reload\n");
  absl::StrAppend(&script, "rm -rf /var/lib/slurm/slurmctld /run/slurm/conf\nrm -f ", kMungeKey,
                  "\n");
  return script;
}

}  // namespace

absl::Status CheckOwned(const Description& wanted, const std::vector<HostFacts>& facts) {
  std::vector<std::string> against;
  for (const HostFacts& host : facts) {
    if (!host.foreign_configuration && (HoldsKey(wanted, host) || !HasSlurm(host))) continue;
    against.push_back(absl::StrCat(
        host.host,
        host.foreign_configuration ? absl::StrCat(" has a ", kSlurmConf, " that tutti did not make")
                                   : " does not hold this cluster's key",
        "; nothing was changed"));
  }
  return Against(against);
}

absl::StatusOr<Plan> MakePlan(const Description& wanted, const std::vector<HostFacts>& facts) {
  TUTTI_RETURN_IF_ERROR(CheckHosts(wanted, facts));
  Plan plan;
  std::vector<std::string> bare;
  for (const HostFacts& host : facts) {
    AddPackages(wanted, host, plan);
    AddKey(wanted, host, plan);
    if (!host.systemd) bare.push_back(host.host);
  }
  AddController(wanted, facts, plan);
  for (const HostFacts& host : facts) {
    if (!IsNode(wanted, host)) continue;
    AddMounts(wanted, host, plan);
    AddNode(wanted, facts, host, plan);
  }
  std::stable_sort(plan.steps.begin(), plan.steps.end(),
                   [](const Step& a, const Step& b) { return a.stage < b.stage; });
  if (!bare.empty()) {
    plan.notes.push_back(absl::StrCat("systemd does not run on ", absl::StrJoin(bare, ", "),
                                      ": after a reboot, run this command again"));
  }
  if (CommonCgroup(wanted, facts).empty()) {
    plan.notes.push_back(absl::StrCat(
        "no cgroups hold a job to its processors, memory and GPUs, as not all nodes have the same "
        "that Slurm can use (",
        CgroupsOfNodes(wanted, facts), ")"));
  }
  if (wanted.autoscale && !wanted.mounts.empty()) {
    plan.notes.push_back(absl::StrCat(
        "nodes of autoscale mount what their image does; put into its /etc/fstab: ",
        absl::StrJoin(wanted.mounts, "; ", [](std::string* text, const NfsMount& mount) {
          absl::StrAppend(text, FstabLine(mount));
        })));
  }
  return plan;
}

absl::StatusOr<std::vector<Step>> PlanRemoval(const Description& wanted,
                                              const std::vector<HostFacts>& facts) {
  TUTTI_RETURN_IF_ERROR(CheckOwned(wanted, facts));
  std::vector<Step> steps;
  for (const HostFacts& host : facts) {
    steps.push_back({Stage::kNodes, host.host, "end its daemons, remove its configuration",
                     RemovalText(wanted, host)});
  }
  return steps;
}

}  // namespace tutti::cluster

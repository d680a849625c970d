// Checks whether machines are fit to be nodes of one cluster; each check that fails names its
// remedy. Nodes report what they see; what follows from it is a pure function.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/cluster/description.h"
#include "platform/cluster/host_facts.h"
#include "platform/cluster/mounts/mount_check.h"
#include "platform/cluster/remote.h"

namespace tutti::cluster {

struct NodeReport {
  std::string host;
  double clock_ahead = 0;   // seconds, of this machine's clock
  double clock_unsure = 0;  // give or take
  bool controller = false;
  std::vector<std::string> unknown_names;    // of other hosts
  std::vector<std::string> refused_ports;    // "h2:6818"
  std::map<std::string, int64_t> free_mib;   // folder -> free space
  bool gpu_without_driver = false;           // a GPU is there, and nvidia-smi does not answer
  std::map<std::string, std::string> links;  // InfiniBand port -> state
  double sent_mb_per_second = 0;             // to the next node; 0: could not be measured
  double microseconds = 0;                   // of a short message there
  std::vector<MountAnswer> mounts;
  std::string unmeasured;  // why, if that could not be measured; with neither,
                           // there is no next node
};

// LinkProgram is the program `tutti-link` (apps/tutti-link), packed to be sent to the nodes, where
// it measures the links by the transport that trainings use; or why there is none.
using LinkProgram = absl::StatusOr<std::string>;
// Packs the program at that path.
LinkProgram PackLinkProgram(const std::filesystem::path& program);

// Returns the script for `host`; those of all hosts run at the same time: after the other checks
// each of the nodes sends to the next in a ring. `secret` is by what the ends of a link know each
// other.
std::string CheckScript(const std::vector<HostFacts>& nodes, const HostFacts& host,
                        const LinkProgram& link, const std::string& secret);

absl::StatusOr<NodeReport> ReadReport(const std::string& host, absl::string_view text);

struct Finding {
  enum class Outcome { kOk, kWarning, kFailed };
  std::string host, name;
  Outcome outcome = Outcome::kOk;
  std::string detail, remedy;
};

// Returns a finding for each host and check. Clocks are compared with the controller's, if that is
// there.
std::vector<Finding> Judge(const std::vector<NodeReport>& reports);

// Checks the controller and the nodes. A host that cannot be reached is a finding, too.
std::vector<Finding> CheckHosts(Remote& remote, const Description& description,
                                const LinkProgram& link);

}  // namespace tutti::cluster

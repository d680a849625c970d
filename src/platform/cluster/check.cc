#include "platform/cluster/check.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/cluster/configuration.h"
#include "platform/cluster/leave.h"
#include "platform/cluster/work.h"

namespace tutti::cluster {
namespace {

constexpr double kMostSkew = 1;       // seconds; munge itself refuses at 300
constexpr int64_t kLeastDisk = 1024;  // MiB
constexpr double kSlowLink = 0.5;     // of the median
constexpr absl::Duration kCheckTime = absl::Minutes(3);

// `others` and `controller` are set before it; that is empty if the controller is away.
constexpr absl::string_view kCheckScript = R"sh(
set +e
PATH=$PATH:/usr/sbin:/sbin; export PATH LC_ALL=C
open() { timeout 10 bash -c "exec 3<>/dev/tcp/$1/$2" 2>/dev/null; }
for other in $others; do
  name=${other%%=*} address=${other#*=}
  getent hosts "$name" >/dev/null || echo "unknown=$name"
  { open "$address" 6818 || echo "refused=$name:6818"; } &
done
[ -z "$controller" ] || open "${controller#*=}" 6817 || echo "refused=${controller%%=*}:6817"
wait
for folder in /tmp /var/spool /var/log; do
  df -Pm "$folder" 2>/dev/null | awk -v f="$folder" 'NR == 2 { print "disk=" $4 " " f }'
done
if grep -qsx 0x10de /sys/bus/pci/devices/*/vendor && ! { timeout 25 nvidia-smi -L 2>/dev/null & } | timeout 20 grep -q '^GPU '; then echo driver=none; fi
for port in /sys/class/infiniband/*/ports/*; do
  [ -f "$port/state" ] && echo "link=$(echo "$port" | cut -d/ -f5,7) $(cut -d: -f2 <"$port/state" | tr -d ' ')"
done
)sh";

// `index`, `addresses` and `secret` are set before it, the program (base64) comes between its
// halves.
constexpr absl::string_view kLinkBegins = R"sh(
place=$(mktemp -d)
base64 -d <<'PROGRAM' | tar -xzf - -C "$place"
)sh";
constexpr absl::string_view kLinkEnds = R"sh(
PROGRAM
if TUTTI_JOB_TOKEN=$secret timeout 120 "$place/tutti-link" measure $index $addresses >"$place/out" 2>"$place/err"; then
  echo "bandwidth=$(tail -n 1 "$place/out")"
else
  echo "unmeasured=$? $(tail -n 1 "$place/err")"
fi
rm -rf "$place"
)sh";
constexpr size_t kLine = 1000;  // shells take longer ones badly
constexpr int kNoLink = 1;      // what tutti-link ends with if it ran and could not measure

std::string Pair(const HostFacts& host) { return absl::StrCat(host.name, "=", host.address); }

std::pair<std::string, std::string> InTwo(absl::string_view text, char at) {
  return absl::StrSplit(text, absl::MaxSplits(at, 1));
}

Finding MakeFinding(const NodeReport& report, const char* name) {
  Finding finding;
  finding.host = report.host;
  finding.name = name;
  return finding;
}

// nullptr: the controller did not report.
Finding JudgeClock(const NodeReport& report, const NodeReport* controller) {
  Finding finding = MakeFinding(report, "clock");
  if (&report == controller) {
    finding.detail = "the others' are compared with it";
    return finding;
  }
  const double ahead = report.clock_ahead - (controller ? controller->clock_ahead : 0);
  const double unsure = report.clock_unsure + (controller ? controller->clock_unsure : 0);
  finding.detail = absl::StrFormat("%+.2f s from %s (within %.2f s)", ahead,
                                   controller ? "the controller's" : "this machine's", unsure);
  if (std::abs(ahead) - unsure <= kMostSkew) return finding;
  finding.outcome = Finding::Outcome::kFailed;
  finding.remedy = "keep its clock and the controller's by NTP: apt-get install chrony";
  return finding;
}

Finding JudgeNames(const NodeReport& report) {
  Finding finding = MakeFinding(report, "names");
  finding.detail = "finds every other node";
  if (report.unknown_names.empty()) return finding;
  finding.outcome = Finding::Outcome::kWarning;
  finding.detail = absl::StrCat("does not find ", absl::StrJoin(report.unknown_names, ", "));
  finding.remedy = "put them into DNS or /etc/hosts; Slurm itself goes by addresses here";
  return finding;
}

Finding JudgePorts(const NodeReport& report) {
  Finding finding = MakeFinding(report, "ports");
  finding.detail = "Slurm's daemons answer";
  if (report.refused_ports.empty()) return finding;
  finding.outcome = Finding::Outcome::kFailed;
  finding.detail = absl::StrCat("cannot reach ", absl::StrJoin(report.refused_ports, ", "));
  finding.remedy =
      "open TCP 6817 to 6818 between the nodes; if a daemon is down, `tutti cluster create` "
      "starts it";
  return finding;
}

Finding JudgeDisk(const NodeReport& report) {
  Finding finding = MakeFinding(report, "disk");
  std::vector<std::string> full;
  int64_t least = INT64_MAX;
  for (const auto& [folder, free] : report.free_mib) {
    least = std::min(least, free);
    if (free < kLeastDisk) full.push_back(absl::StrCat(folder, " has ", free, " MiB"));
  }
  finding.detail = absl::StrCat(report.free_mib.empty() ? 0 : least, " MiB or more are free");
  if (full.empty() && !report.free_mib.empty()) return finding;
  finding.outcome = Finding::Outcome::kFailed;
  if (!full.empty()) finding.detail = absl::StrJoin(full, ", ");
  finding.remedy = absl::StrCat("free ", kLeastDisk, " MiB there");
  return finding;
}

// A port without a cable is usual; a host without any port is not.
Finding JudgeDevices(const NodeReport& report) {
  Finding finding = MakeFinding(report, "devices");
  std::vector<std::string> details, remedies, down;
  for (const auto& [port, state] : report.links) {
    if (state != "ACTIVE") down.push_back(absl::StrCat(port, " is ", state));
  }
  if (!down.empty()) {
    finding.outcome =
        down.size() == report.links.size() ? Finding::Outcome::kFailed : Finding::Outcome::kWarning;
    details.push_back(absl::StrJoin(down, ", "));
    remedies.push_back("see its cable and the subnet manager (ibstat, opensm)");
  }
  if (report.gpu_without_driver) {
    finding.outcome = Finding::Outcome::kFailed;
    details.push_back("a GPU whose driver does not answer");
    remedies.push_back("install NVIDIA's driver: apt-get install nvidia-driver, or see `dmesg`");
  }
  finding.detail = absl::StrJoin(details, "; ");
  finding.remedy = absl::StrJoin(remedies, "; ");
  if (details.empty()) {
    finding.detail = absl::StrCat("GPUs have their driver; ", report.links.size(),
                                  " InfiniBand ports, all active");
  }
  return finding;
}

Finding JudgeMounts(const NodeReport& report) {
  Finding finding = MakeFinding(report, "mounts");
  std::vector<std::string> details, remedies;
  for (const MountAnswer& mount : report.mounts) {
    details.push_back(DetailOf(mount));
    if (mount.state == MountAnswer::State::kAnswers) continue;
    finding.outcome = Finding::Outcome::kFailed;
    const std::string remedy = RemedyOf(mount);
    if (std::find(remedies.begin(), remedies.end(), remedy) == remedies.end())
      remedies.push_back(remedy);
  }
  finding.detail = absl::StrJoin(details, "; ");
  finding.remedy = absl::StrJoin(remedies, "; ");
  return finding;
}

Finding JudgeLink(const NodeReport& report, double median) {
  Finding finding = MakeFinding(report, "bandwidth");
  finding.detail = absl::StrFormat("%.0f MB/s and %.0f us to the next node",
                                   report.sent_mb_per_second, report.microseconds);
  if (report.sent_mb_per_second >= median * kSlowLink && report.sent_mb_per_second > 0) {
    return finding;
  }
  finding.outcome = Finding::Outcome::kWarning;
  if (report.sent_mb_per_second > 0) {
    absl::StrAppend(&finding.detail, absl::StrFormat("; others send %.0f", median));
    finding.remedy = "see the link's speed (ethtool) and what else uses it";
    return finding;
  }
  const auto [code, why] = InTwo(report.unmeasured, ' ');
  finding.detail = absl::StrCat("could not be measured: ", why);
  if (code == absl::StrCat(kNoLink)) {
    finding.outcome = Finding::Outcome::kFailed;
    finding.remedy =
        "open TCP between the nodes: 6830 for this check, and for jobs every port above 1024";
  } else if (code.empty()) {
    finding.remedy = "use a tutti that was built with its runtime";
  } else {
    finding.remedy =
        "trainings will not run there either: it needs this machine's kind of processor, a C "
        "library as new, and a /tmp that allows programs";
  }
  return finding;
}

// `gone`: all that cannot be reached.
Finding Unseen(const std::string& host, const absl::Status& why,
               const std::vector<std::string>& gone, bool controller_is_gone) {
  Finding finding;
  finding.host = host;
  finding.name = "reach";
  finding.outcome = Finding::Outcome::kFailed;
  finding.detail = std::string(why.message());
  if (!absl::IsUnavailable(why)) {
    finding.remedy = absl::StrCat("see by `ssh ", host, "` what holds it up");
  } else if (controller_is_gone) {
    finding.remedy =
        "if the controller is gone: `tutti cluster delete --force` ends the cluster, which it led";
  } else {
    finding.remedy = absl::StrCat("if gone for good: ", RemovalOfGone(gone));
  }
  return finding;
}

// {"megabytes_per_second": M, "microseconds": U}
void ReadBandwidth(absl::string_view text, NodeReport& report) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  const auto number = [&](const char* name) {
    const bool is_there = json.is_object() && json.contains(name) && json[name].is_number();
    return is_there ? json[name].get<double>() : 0;
  };
  report.sent_mb_per_second = number("megabytes_per_second");
  report.microseconds = number("microseconds");
  if (report.sent_mb_per_second <= 0) report.unmeasured = "2 tutti-link said no number";
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// A clock is off by what it says less the middle of question and answer, give or take half of what
// they took; the best of three.
absl::Status AskClock(Remote& remote, NodeReport& report) {
  report.clock_unsure = 1e9;
  for (int i = 0; i < 3; ++i) {
    const absl::Time before = absl::Now();
    TUTTI_ASSIGN_OR_RETURN(const std::string text, remote.Run(report.host, "date +%s.%N",
                                                              base::Deadline::After(kCheckTime)));
    const absl::Duration half = (absl::Now() - before) / 2;
    double seconds = 0;
    if (!absl::SimpleAtod(absl::StripAsciiWhitespace(text), &seconds)) {
      return absl::InvalidArgumentError(absl::StrCat(report.host, ": does not tell its time"));
    }
    if (absl::ToDoubleSeconds(half) >= report.clock_unsure) continue;
    report.clock_unsure = absl::ToDoubleSeconds(half);
    report.clock_ahead = seconds - absl::ToDoubleSeconds(before + half - absl::UnixEpoch());
  }
  return absl::OkStatus();
}

absl::StatusOr<NodeReport> LookAt(Remote& remote, const std::string& host,
                                  const std::string& script) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         remote.Run(host, script, base::Deadline::After(kCheckTime)));
  TUTTI_ASSIGN_OR_RETURN(NodeReport report, ReadReport(host, text));
  TUTTI_RETURN_IF_ERROR(AskClock(remote, report));
  return report;
}

}  // namespace

LinkProgram PackLinkProgram(const std::filesystem::path& program) {
  const base::TemporaryDirectory folder("tutti-link");
  const std::filesystem::path archive = folder.path() / "archive";
  base::ChildOptions options;
  options.arguments = {program.native(), "pack", archive.native()};
  options.environment = base::CurrentEnvironment();
  options.directory = "/";
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult packed,
                         base::RunCommand(options, "", base::Deadline::After(kCheckTime)));
  if (!packed.exit.ok())
    return absl::InternalError(absl::StrCat(program.native(), ": ", packed.err));
  return base::ReadFile(archive);
}

std::string CheckScript(const std::vector<HostFacts>& nodes, const HostFacts& host,
                        const LinkProgram& link, const std::string& secret) {
  std::vector<std::string> others, addresses;
  size_t index = nodes.size();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].host == host.host) index = i;
    if (i != index) others.push_back(Pair(nodes[i]));
    addresses.push_back(nodes[i].address);
  }
  const bool in_ring = nodes.size() > 1 && index < nodes.size();
  std::string script = absl::StrCat("others='", absl::StrJoin(others, " "), "'\n", kCheckScript);
  if (in_ring && !link.ok()) {
    absl::StrAppend(&script, "echo 'unmeasured= ",
                    absl::StrReplaceAll(link.status().message(), {{"'", ""}, {"\n", " "}}), "'\n");
  } else if (in_ring) {
    absl::StrAppend(&script, "index=", index, " secret=", secret, " addresses='",
                    absl::StrJoin(addresses, " "), "'", kLinkBegins);
    const std::string text = absl::Base64Escape(*link);
    for (size_t at = 0; at < text.size(); at += kLine) {
      absl::StrAppend(&script, at == 0 ? "" : "\n", absl::string_view(text).substr(at, kLine));
    }
    absl::StrAppend(&script, kLinkEnds);
  }
  return script + "echo end=yes\n";
}

absl::StatusOr<NodeReport> ReadReport(const std::string& host, absl::string_view text) {
  NodeReport report;
  report.host = host;
  bool whole = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const auto [key, value] = InTwo(line, '=');
    if (key == "unknown") report.unknown_names.push_back(value);
    if (key == "refused") report.refused_ports.push_back(value);
    if (key == "mount") ReadMountAnswer(value, report.mounts);
    if (key == "driver") report.gpu_without_driver = true;
    if (key == "end") whole = true;
    if (key == "link") report.links.insert(InTwo(value, ' '));
    if (key == "bandwidth") ReadBandwidth(value, report);
    if (key == "unmeasured") report.unmeasured = value;
    if (key != "disk") continue;
    const auto [free, folder] = InTwo(value, ' ');
    if (!absl::SimpleAtoi(free, &report.free_mib[folder])) report.free_mib[folder] = 0;
  }
  if (whole) return report;
  return absl::InvalidArgumentError(absl::StrCat(host, ": its checks did not come to their end"));
}

std::vector<Finding> Judge(const std::vector<NodeReport>& reports) {
  std::vector<double> speeds;
  for (const NodeReport& report : reports) {
    if (report.sent_mb_per_second > 0) speeds.push_back(report.sent_mb_per_second);
  }
  const double median = MedianOf(speeds);
  const auto found = std::find_if(reports.begin(), reports.end(),
                                  [](const NodeReport& report) { return report.controller; });
  const NodeReport* controller = found == reports.end() ? nullptr : &*found;
  std::vector<Finding> findings;
  for (const NodeReport& report : reports) {
    findings.insert(findings.end(), {JudgeClock(report, controller), JudgeNames(report),
                                     JudgePorts(report), JudgeDisk(report), JudgeDevices(report)});
    if (!report.mounts.empty()) findings.push_back(JudgeMounts(report));
    if (report.sent_mb_per_second > 0 || !report.unmeasured.empty()) {
      findings.push_back(JudgeLink(report, median));
    }
  }
  return findings;
}

std::vector<Finding> CheckHosts(Remote& remote, const Description& description,
                                const LinkProgram& link) {
  const std::vector<std::string> hosts = description.Hosts();
  const std::vector<absl::StatusOr<HostFacts>> facts = ProbeEach(remote, hosts);
  const auto& controller = facts.front();
  const std::string before =
      absl::StrCat("controller=", controller.ok() ? Pair(*controller) : "", "\n");
  std::vector<HostFacts> nodes;
  for (const std::string& host : description.nodes) {
    const auto& node = facts[std::find(hosts.begin(), hosts.end(), host) - hosts.begin()];
    if (node.ok()) nodes.push_back(*node);
  }
  const std::string secret = base::RandomHex(16);
  std::vector<absl::StatusOr<NodeReport>> reports(hosts.size());
  OnEach(hosts, [&](size_t i) {
    if (!facts[i].ok()) {
      reports[i] = facts[i].status();
      return absl::OkStatus();
    }
    const bool is_node = std::find(description.nodes.begin(), description.nodes.end(), hosts[i]) !=
                         description.nodes.end();
    const std::string mounts = is_node ? CheckMountsText(description.mounts) : "";
    reports[i] = LookAt(
        remote, hosts[i],
        absl::StrCat(before, "set +e\n", mounts, CheckScript(nodes, *facts[i], link, secret)));
    return absl::OkStatus();
  }).IgnoreError();
  std::vector<std::string> gone;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (absl::IsUnavailable(reports[i].status())) gone.push_back(hosts[i]);
  }
  const bool controller_is_gone = absl::IsUnavailable(reports.front().status());
  std::vector<Finding> findings;
  std::vector<NodeReport> told;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (reports[i].ok()) told.push_back(*reports[i]);
    if (reports[i].ok()) told.back().controller = i == 0;
    if (reports[i].ok()) continue;
    findings.push_back(Unseen(hosts[i], reports[i].status(), gone, controller_is_gone));
  }
  const std::vector<Finding> judged = Judge(told);
  findings.insert(findings.end(), judged.begin(), judged.end());
  return findings;
}

}  // namespace tutti::cluster

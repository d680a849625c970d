#include "platform/cluster/upgrade.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "platform/cluster/daemons.h"

namespace tutti::cluster {
namespace {

constexpr absl::string_view kScript = R"sh(
PATH=$PATH:/usr/sbin:/sbin; export PATH LC_ALL=C
command -v apt-get >/dev/null || { echo end=yes; exit 0; }
said=$(apt-get update -qq -o APT::Update::Error-Mode=any 2>&1 </dev/null) || { echo "$said" | grep -m 1 '^[EW]:' >&2 || echo "apt-get update: $said" >&2; exit 1; }
names=$(dpkg-query -W -f '${source:Package} ${db:Status-Status} ${Package}\n' | awk '($1 == "slurm-wlm" || $1 == "munge") && $2 == "installed" { print $3 }')
[ -z "$names" ] || apt-cache policy $names | awk '
    /^[^ ]/ { sub(/:$/, ""); name = $0 } $1 == "Installed:" { has = $2 } $1 == "Candidate:" { print name, has, $2 }' |
  while read -r name has best; do
    if [ "$best" = "$has" ] || ! dpkg --compare-versions "$best" gt "$has"; then best=; fi
    echo "package=$name $has${best:+ $best}"
  done
for d in /proc/[0-9]*; do
  case $(readlink $d/exe 2>/dev/null || true) in *" (deleted)") echo "outdated=$(cat $d/comm)" ;; esac
done
echo end=yes
)sh";

// Rather fails than takes away what it cannot upgrade.
constexpr absl::string_view kUpgrade = "--only-upgrade --no-remove";
constexpr std::array<absl::string_view, 4> kDaemons = {"munged", "slurmdbd", "slurmctld", "slurmd"};

bool IsVersion(absl::string_view text) {
  return !text.empty() && text.size() < 100 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || absl::StrContains(".+-~:", c);
         });
}

bool ReadPackage(absl::string_view value, HostPackages& host) {
  const std::vector<absl::string_view> words = absl::StrSplit(value, ' ');
  if (words.size() < 2 || words.size() > 3 || words[0].empty()) return false;
  if (!std::all_of(words.begin() + 1, words.end(), &IsVersion)) return false;
  host.packages[std::string(words[0])] = {std::string(words[1]),
                                          words.size() == 3 ? std::string(words[2]) : ""};
  return true;
}

const HostPackages& PackagesOf(const std::vector<HostPackages>& packages, const std::string& host) {
  return *std::find_if(packages.begin(), packages.end(),
                       [&](const HostPackages& one) { return one.host == host; });
}

// Packages of one source ask for each other in the very same version: they are put in place
// together.
std::vector<std::string> Newer(const HostPackages& host, bool of_munge) {
  std::vector<std::string> names;
  for (const auto& [name, versions] : host.packages) {
    if (absl::StrContains(name, "munge") == of_munge && !versions.newer.empty()) {
      names.push_back(name);
    }
  }
  return names;
}

// "22.05" of "1:22.05.8-4+deb12u3".
std::string MajorOf(absl::string_view version) {
  const size_t epoch = version.find(':');
  if (epoch != absl::string_view::npos) version.remove_prefix(epoch + 1);
  const size_t dot = version.find('.');
  if (dot == absl::string_view::npos) return std::string(version);
  return std::string(version.substr(0, version.find('.', dot + 1)));
}

// A major release reads what its two predecessors keep, from 24.11 on its three: none is more than
// 21 months older, and the next one back is in each case (https://slurm.schedmd.com/upgrades.html).
constexpr int kReadsBack = 21;

// Returns the months from January 2000 to a major release: 22 * 12 + 5 for "22.05".
int MonthsOf(absl::string_view major) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(major, absl::MaxSplits('.', 1));
  int year = 0, month = 0;
  if (!absl::SimpleAtoi(parts.first, &year) || !absl::SimpleAtoi(parts.second, &month)) return 0;
  return year * 12 + month;
}

PackageVersions VersionsOf(const HostPackages& host, const std::string& package) {
  const auto found = host.packages.find(package);
  return found == host.packages.end() ? PackageVersions() : found->second;
}

class UpgradeOfHost {
 public:
  UpgradeOfHost(const HostFacts& host, const HostPackages& packages, std::vector<Step>& steps)
      : host_(host),
        packages_(packages),
        slurm_(Newer(packages, false)),
        munge_(Newer(packages, true)),
        steps_(steps) {}

  void Fetch() {
    std::vector<std::string> names = munge_;
    names.insert(names.end(), slurm_.begin(), slurm_.end());
    if (names.empty()) return;
    Add(Stage::kPackages, absl::StrCat("fetch ", names.size(), " newer packages"),
        InstallText(names, "--only-upgrade --download-only"));
  }

  void Munge() { Restart(Stage::kKey, "munged", munge_, !munge_.empty()); }

  void Daemon(Stage stage, const std::string& daemon) {
    Restart(stage, daemon, slurm_, !std::exchange(installed_, true));
  }

 private:
  // `newer` packages are there for it, to be installed or by then installed.
  void Restart(Stage stage, const std::string& daemon, const std::vector<std::string>& newer,
               bool install) {
    if (newer.empty() && !packages_.outdated.contains(daemon)) return;
    Add(stage,
        newer.empty()
            ? absl::StrCat("restart ", daemon, ", whose program was replaced")
            : absl::StrCat("upgrade ", daemon, " to ", VersionsOf(packages_, newer.front()).newer),
        absl::StrCat(install && !newer.empty() ? InstallText(newer, kUpgrade) : "",
                     StopText(host_, daemon), StartText(host_, daemon)));
  }
  void Add(Stage stage, std::string what, std::string script) {
    steps_.push_back({stage, host_.host, std::move(what), std::move(script)});
  }

  const HostFacts& host_;
  const HostPackages& packages_;
  const std::vector<std::string> slurm_, munge_;
  bool installed_ = false;
  std::vector<Step>& steps_;
};

absl::Status CheckUpgrade(const Description& wanted, const std::vector<HostFacts>& facts,
                          const std::vector<HostPackages>& packages) {
  std::vector<std::string> against;
  for (const HostFacts& host : facts) {
    if (host.has_apt) continue;
    against.push_back(absl::StrCat(host.host, " runs ", host.system,
                                   ", where tutti upgrades nothing; nothing was changed"));
  }
  if (!against.empty()) return absl::FailedPreconditionError(absl::StrJoin(against, "\n"));
  const PackageVersions versions = VersionsOf(PackagesOf(packages, wanted.controller), "slurmctld");
  const std::string before = MajorOf(versions.installed), controller = MajorOf(versions.after());
  if (MonthsOf(controller) - MonthsOf(before) > kReadsBack) {
    against.push_back(absl::StrCat(
        wanted.controller, " would come from Slurm ", before, " to ", controller,
        ", which does not read what one so old keeps, and would not start: take packages of a "
        "release in between first, or end the cluster by `tutti cluster delete`, upgrade the "
        "packages and create it anew; nothing was changed"));
  }
  for (const HostFacts& host : facts) {
    const std::string major =
        MajorOf(VersionsOf(PackagesOf(packages, host.host), "slurmd").after());
    if (major <= controller) continue;
    against.push_back(absl::StrCat(host.host, " would have Slurm ", major,
                                   ", and the controller only ", controller,
                                   ": a node may not be ahead of it; nothing was changed"));
  }
  if (against.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrJoin(against, "\n"));
}

}  // namespace

std::string PackagesScript() { return std::string(kScript); }

absl::StatusOr<HostPackages> ReadPackages(const std::string& host, absl::string_view text) {
  HostPackages packages;
  packages.host = host;
  bool ended = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (entry.first == "package" && !ReadPackage(entry.second, packages)) {
      return absl::InvalidArgumentError(
          absl::StrCat(host, ": cannot use \"", line.substr(0, 80), "\" of this host"));
    }
    const bool is_daemon =
        std::find(kDaemons.begin(), kDaemons.end(), entry.second) != kDaemons.end();
    if (entry.first == "outdated" && is_daemon) packages.outdated.emplace(entry.second);
    ended = ended || entry.first == "end";
  }
  if (ended) return packages;
  return absl::InvalidArgumentError(absl::StrCat(host, ": does not tell its packages to the end"));
}

absl::StatusOr<std::vector<Step>> PlanUpgrade(const Description& wanted,
                                              const std::vector<HostFacts>& facts,
                                              const std::vector<HostPackages>& packages) {
  if (const absl::Status fits = CheckUpgrade(wanted, facts, packages); !fits.ok()) return fits;
  std::vector<Step> steps;
  for (const HostFacts& host : facts) {
    UpgradeOfHost upgrade(host, PackagesOf(packages, host.host), steps);
    upgrade.Fetch();
    upgrade.Munge();
    const bool controls = host.host == wanted.controller;
    if (controls && wanted.accounting) upgrade.Daemon(Stage::kDatabase, "slurmdbd");
    if (controls) upgrade.Daemon(Stage::kController, "slurmctld");
    if (std::find(wanted.nodes.begin(), wanted.nodes.end(), host.host) != wanted.nodes.end()) {
      upgrade.Daemon(Stage::kNodes, "slurmd");
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.stage < b.stage; });
  return steps;
}

std::string MajorChange(const Description& wanted, const std::vector<HostPackages>& packages) {
  const PackageVersions versions = VersionsOf(PackagesOf(packages, wanted.controller), "slurmctld");
  const std::string before = MajorOf(versions.installed), after = MajorOf(versions.after());
  return before == after ? "" : absl::StrCat("from ", before, " to ", after);
}

}  // namespace tutti::cluster

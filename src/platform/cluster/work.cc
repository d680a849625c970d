#include "platform/cluster/work.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "platform/cluster/configuration.h"

namespace tutti::cluster {
namespace {

constexpr size_t kMostAtOnce = 128;
constexpr absl::Duration kAnswers = absl::Seconds(30);
constexpr absl::Duration kProbeTime = absl::Seconds(60);
constexpr absl::Duration kStepTime = absl::Minutes(15);  // apt may have much to fetch

absl::StatusOr<HostFacts> ProbeHost(Remote& remote, const std::string& host) {
  TUTTI_ASSIGN_OR_RETURN(
      const std::string text,
      remote.Run(host, absl::StrCat("set +e\n", ProbeScript()), base::Deadline::After(kProbeTime)));
  return ReadFacts(host, text);
}

absl::Status CarryOutOnHost(Remote& remote, const std::vector<const Step*>& steps,
                            const Report& report, absl::Mutex& reporting) {
  for (const Step* step : steps) {
    const absl::Time begun = absl::Now();
    const absl::Status done =
        remote.Run(step->host, step->script, base::Deadline::After(kStepTime)).status();
    const absl::MutexLock lock(&reporting);
    report(step->host, step->what,
           done.ok() ? absl::StrFormat("done (%.1f s)", absl::ToDoubleSeconds(absl::Now() - begun))
                     : "FAILED");
    if (!done.ok()) {
      return absl::Status(done.code(), absl::StrCat(done.message(), " (", step->what, ")"));
    }
  }
  return absl::OkStatus();
}

// Waits in the controller, which answers once all are usable or set aside (by someone else than
// Slurm itself), with a line for each of the latter; else says which are not, and why. Without
// names it waits for slurmctld alone.
std::string AwaitScript(const std::vector<std::string>& names, int seconds) {
  return absl::StrCat("names='", absl::StrJoin(names, ","), "' count=", names.size(),
                      "\nend=$(( $(date +%s) + ", seconds, " ))\n",
                      R"sh(
works() { grep -E '^[^|]*\|(idle|planned|mixed|allocated|completing|reserved)[-+]?\|' "$@"; }
aside() { awk -F'|' '$2 == "maint" || $2 ~ /^drain(ed|ing)$/ && $3 != "slurm" { print $1 "|" $2 " by " $3 " (" $4 ")" }'; }
while :; do
  if nodes=$(sinfo -h -N ${names:+-n "$names"} -o '%N|%T|%u|%E' 2>&1); then
    up=$(echo "$nodes" | works -c || true) aside=$(echo "$nodes" | aside)
    if [ $((up + $(echo "$aside" | grep -c . || true))) -ge $count ]; then echo "$aside"; exit 0; fi
    why=$(echo "$nodes" | works -v | awk -F'|' '{ printf "%s is %s (%s);", $1, $2, $4 }')
  else
    why="slurmctld does not answer: $nodes"
  fi
  [ "$(date +%s)" -lt $end ] || break
  sleep 0.2
done
echo "$why" >&2
exit 1
)sh");
}

}  // namespace

absl::StatusOr<std::vector<NodeState>> AskNodeStates(Remote& remote,
                                                     const std::string& controller) {
  TUTTI_ASSIGN_OR_RETURN(
      const std::string text,
      remote.Run(controller, "scontrol --oneliner show node", base::Deadline::After(kAnswers)));
  return ReadNodeStates(text);
}

absl::Status OnEach(const std::vector<std::string>& hosts,
                    const std::function<absl::Status(size_t index)>& act) {
  std::vector<absl::Status> results(hosts.size());
  std::atomic<size_t> next = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < std::min(hosts.size(), kMostAtOnce); ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < hosts.size(); at = next++) results[at] = act(at);
    });
  }
  for (std::thread& thread : threads) thread.join();
  absl::StatusCode code = absl::StatusCode::kOk;
  std::vector<std::string> messages;
  for (const absl::Status& result : results) {
    if (result.ok()) continue;
    if (messages.empty()) code = result.code();
    messages.emplace_back(result.message());
  }
  return absl::Status(code, absl::StrJoin(messages, "\n"));
}

std::vector<absl::StatusOr<HostFacts>> ProbeEach(Remote& remote,
                                                 const std::vector<std::string>& hosts) {
  std::vector<absl::StatusOr<HostFacts>> facts(hosts.size());
  OnEach(hosts, [&](size_t i) {
    facts[i] = ProbeHost(remote, hosts[i]);
    return absl::OkStatus();
  }).IgnoreError();
  return facts;
}

absl::StatusOr<std::vector<HostFacts>> Probe(Remote& remote,
                                             const std::vector<std::string>& hosts) {
  std::vector<HostFacts> facts(hosts.size());
  TUTTI_RETURN_IF_ERROR(OnEach(hosts, [&](size_t i) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(facts[i], ProbeHost(remote, hosts[i]));
    return absl::OkStatus();
  }));
  return facts;
}

absl::StatusOr<std::vector<HostPackages>> ProbePackages(Remote& remote,
                                                        const std::vector<std::string>& hosts) {
  std::vector<HostPackages> packages(hosts.size());
  TUTTI_RETURN_IF_ERROR(OnEach(hosts, [&](size_t i) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, remote.Run(hosts[i], PackagesScript(),
                                                              base::Deadline::After(kStepTime)));
    TUTTI_ASSIGN_OR_RETURN(packages[i], ReadPackages(hosts[i], text));
    return absl::OkStatus();
  }));
  return packages;
}

absl::Status CarryOut(Remote& remote, const std::vector<Step>& steps, const Report& report) {
  absl::Mutex reporting;
  for (auto begin = steps.begin(); begin != steps.end();) {
    const auto end = std::find_if(begin, steps.end(),
                                  [&](const Step& step) { return step.stage != begin->stage; });
    std::vector<std::string> hosts;
    std::vector<std::vector<const Step*>> of_host;
    for (; begin != end; ++begin) {
      const auto at = std::find(hosts.begin(), hosts.end(), begin->host);
      if (at == hosts.end()) {
        hosts.push_back(begin->host);
        of_host.push_back({&*begin});
      } else {
        of_host[at - hosts.begin()].push_back(&*begin);
      }
    }
    TUTTI_RETURN_IF_ERROR(OnEach(
        hosts, [&](size_t i) { return CarryOutOnHost(remote, of_host[i], report, reporting); }));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> AwaitNodes(Remote& remote,
                                                              const Description& description,
                                                              const std::vector<HostFacts>& facts,
                                                              base::Deadline deadline) {
  std::vector<std::string> names;
  for (const std::string& host : description.nodes) names.push_back(FactsOf(facts, host)->name);
  const int seconds = static_cast<int>(absl::ToInt64Seconds(deadline.Remaining()));
  const auto told = remote.Run(description.controller, AwaitScript(names, seconds),
                               base::Deadline::After(deadline.Remaining() + absl::Seconds(30)));
  if (absl::IsAborted(told.status())) {
    return absl::AbortedError(
        absl::StrCat(told.status().message(),
                     "; see /var/log/slurm/slurmctld.log there and slurmd.log on "
                     "the node"));
  }
  TUTTI_RETURN_IF_ERROR(told.status());
  std::map<std::string, std::string> aside;
  for (const absl::string_view line : absl::StrSplit(*told, '\n', absl::SkipEmpty())) {
    aside.insert(absl::StrSplit(line, absl::MaxSplits('|', 1)));
  }
  return aside;
}

absl::StatusOr<int> TryNodes(Remote& remote, const std::string& controller,
                             const std::vector<HostFacts>& nodes) {
  std::set<std::string> names;
  for (const HostFacts& node : nodes) names.insert(node.name);
  const std::string script = absl::StrCat(
      "cd /\nexec srun --immediate=30 --time=1 --mem=64 --job-name=tutti-cluster --nodes=",
      names.size(), " --ntasks-per-node=1 --nodelist=", absl::StrJoin(names, ","),
      " hostname -s </dev/null\n");
  TUTTI_ASSIGN_OR_RETURN(const std::string said,
                         remote.Run(controller, script, base::Deadline::After(absl::Minutes(2))));
  const std::set<std::string> answered = absl::StrSplit(said, '\n', absl::SkipWhitespace());
  if (answered == names) return static_cast<int>(names.size());
  return absl::AbortedError(absl::StrCat("srun hostname was to come from ",
                                         absl::StrJoin(names, ", "), "; it came from ",
                                         absl::StrJoin(answered, ", ")));
}

}  // namespace tutti::cluster

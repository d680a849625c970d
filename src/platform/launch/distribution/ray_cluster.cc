#include "platform/launch/distribution/ray_cluster.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/hash.h"
#include "base/process/command.h"
#include "platform/launch/environment/rank_driver.h"
#include "platform/launch/node/private_name.h"

namespace tutti::launch {
namespace {

// For each of: Ray's head, what is asked of it, a worker. A first import from a shared folder may
// take a minute.
constexpr int kSecondsToJoin = 180;

// Words in capitals are replaced. What `ray start` says goes to a file, since Ray's processes hold
// on to its output. Nodes that share a machine begin one after the other (the lock): Ray gives its
// sockets names that are free when it looks, and binds them later.
constexpr char kScriptBegin[] = R"sh(log=$AZ_BATCHAI_JOB_TEMP/ray-start.log
: >"$log"
say() { cat "$log" >&2; echo "tutti: $1" >&2; }
ended() { if [ "$1" = 124 ]; then echo "hung"; else echo "ended with $1"; fi; }
within() { if command -v timeout >/dev/null; then timeout -k 10 "$@"; else shift; "$@"; fi; }
if ! command -v ray >/dev/null; then
  say "node NODE has no program ray, which the job's environment must have"
  exit 127
fi
mkdir -p FOLDER && exec 9>FOLDER/lock || exit
)sh";

// A script may count what the cluster has when it begins, so all nodes are waited for, and each has
// to run a task: Ray waits for ever where a node's workers cannot begin. Leaves without Ray's own
// end, which has hung. A Python without Ray leaves all this to the command. Has no single quote.
constexpr char kAllNodesRun[] = R"py(
import os, sys, time
try:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError:
    sys.exit(0)

def fail(message):
    print("tutti:", message, flush=True)
    os._exit(1)

end = time.monotonic() + PATIENCE
while not ray.is_initialized():  # a node that shares the folder may have put its address there and not be up
    try:
        ray.init(logging_level="ERROR", log_to_driver=False)
    except Exception as error:
        if time.monotonic() > end: fail(f"Ray did not answer within PATIENCE s: {error}")
        ray.shutdown()
        time.sleep(0.5)
while True:
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if len(nodes) >= SIZE: break
    if time.monotonic() > end: fail(f"{len(nodes)} of SIZE nodes joined Ray within PATIENCE s")
    time.sleep(0.1)

@ray.remote(num_cpus=0)
def runs(): return True

asked = {runs.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote():
         node["NodeManagerAddress"] for node in nodes}
ended, silent = ray.wait(list(asked), num_returns=len(asked), timeout=max(1, end - time.monotonic()))
if silent:
    fail("no worker process of Ray began within PATIENCE s on " + ", ".join(asked[task] for task in silent))
ray.get(ended)
os._exit(0)
)py";

// A driver is of the node whose address lies in the session's folder, where nodes that share it
// have put theirs by then.
constexpr char kHead[] = R"sh(
flock 9 2>/dev/null
within PATIENCE ray start --head --port=PORT --temp-dir=FOLDER RESOURCES OPTIONS >"$log" 2>&1 9>&-
code=$?
own=FOLDER/session_latest/node_ip_address.json
cp $own FOLDER/head.json 2>/dev/null
exec 9>&-
if [ $code != 0 ]; then
  say "Ray's head could not be begun on node NODE: ray start $(ended $code)"
  exit $code
fi
if command -v python3 >/dev/null; then
  within $((PATIENCE + 20)) python3 -c 'ALL_NODES_RUN' >"$log" 2>&1
  code=$?
  if [ $code != 0 ]; then
    say "Ray on node NODE did not run a task on each of the SIZE nodes: the check $(ended $code)"
    exit $code
  fi
fi
cp FOLDER/head.json $own 2>/dev/null
exec "${BASH:-/bin/sh}" -c COMMAND
)sh";

// Whether versions go together is for `ray start` to say, at once: the failure has its reason (an
// exception, an error), so what is said here is none, but for a Ray that ends later.
constexpr char kWorker[] = R"sh(
end=$(($(date +%s) + PATIENCE))
until within 30 ray health-check --address=ADDRESS --skip-version-check >/dev/null 2>&1 9>&-; do
  if [ "$(date +%s)" -ge $end ]; then
    say "node NODE found no head of Ray at ADDRESS for PATIENCE s"
    exit 1
  fi
  sleep 1
done
joined() { grep -q 'Ray runtime started' "$log"; }
flock 9 2>/dev/null
ray start --address=ADDRESS RESOURCES OPTIONS --block >"$log" 2>&1 9>&- &
until joined || ! kill -0 $! 2>/dev/null; do sleep 0.2; done
exec 9>&-
wait $!
code=$?
if joined; then
  say "error: Ray on node NODE has ended: ray start $(ended $code)"
else
  say "node NODE could not join Ray at ADDRESS: ray start $(ended $code)"
fi
exit $code
)sh";

std::string Resources(const spec::LaunchPlan& plan, const NodeFacts& facts) {
  // Ports of workers: else each node gives out the same ones, and nodes may share a machine.
  return absl::StrCat("--node-ip-address=", plan.node().address, " --num-cpus=", facts.cores,
                      " --num-gpus=", facts.gpus.size(),
                      " --min-worker-port=0 --max-worker-port=0");
}

// Without a word of the dashboard Ray begins it where it can.
std::string HeadOptions(const spec::RaySettings& ray) {
  return absl::StrCat(
      ray.dashboard ? "" : "--include-dashboard=false ",
      ray.dashboard_port > 0 ? absl::StrCat("--dashboard-port=", ray.dashboard_port, " ") : "",
      ray.head_options);
}

// An option on a line of its own would end the command.
std::string OnOneLine(const std::string& options) {
  return absl::StrReplaceAll(options, {{"\n", " "}});
}

}  // namespace

namespace {

void SetDefaultsOfRay(const spec::LaunchPlan& plan, Variables& variables) {
  variables["RAY_USAGE_STATS_ENABLED"] = "0";
  // From 2.52 on Ray serves those alone who have the token.
  variables["RAY_AUTH_MODE"] = "token";
  variables["RAY_AUTH_TOKEN"] = RayToken(plan);
  variables.erase("OMP_NUM_THREADS");  // which Ray sets for each of its tasks
}

void SetContractOfRay(const spec::LaunchPlan& plan, int, Variables& variables) {
  variables["RAY_ADDRESS"] = RayAddress(plan);
}

void RemoveRayFolder(const spec::LaunchPlan& plan) {
  std::error_code error;
  std::filesystem::remove_all(RayFolder(plan), error);
}

}  // namespace

extern const RankDriver kRayRanks;
const RankDriver kRayRanks = {.type = "ray",
                              .set_defaults = SetDefaultsOfRay,
                              .set_contract = SetContractOfRay,
                              .command = RayCommand,
                              .clean_up = RemoveRayFolder};

std::string RayAddress(const spec::LaunchPlan& plan) {
  return absl::StrCat(plan.nodes.front().address, ":", plan.start_port);
}

std::string RayToken(const spec::LaunchPlan& plan) {
  return base::Hex(base::HmacSha256(plan.job_token, "Ray"));
}

std::string RayFolder(const spec::LaunchPlan& plan) {
  return absl::StrCat("/tmp/tutti-ray-", PrivateName(plan, plan.allocation_id));
}

std::string RayCommand(const spec::LaunchPlan& plan, const NodeFacts& facts,
                       const std::string& command) {
  const spec::RaySettings& ray = plan.distribution.ray;
  const bool is_head = plan.node_index == 0;
  const std::map<std::string, std::string> words = {
      {"SIZE", absl::StrCat(plan.nodes.size())},
      {"NODE", plan.node().name},
      {"ADDRESS", RayAddress(plan)},
      {"PORT", absl::StrCat(plan.start_port)},
      {"FOLDER", RayFolder(plan)},
      {"RESOURCES", Resources(plan, facts)},
      {"OPTIONS", OnOneLine(is_head ? HeadOptions(ray) : ray.worker_options)},
      {"PATIENCE", absl::StrCat(kSecondsToJoin)},
      {"COMMAND", base::ShellQuoted(command)}};
  const std::string head = absl::StrReplaceAll(kHead, {{"ALL_NODES_RUN", kAllNodesRun}});
  return absl::StrReplaceAll(absl::StrCat(kScriptBegin, is_head ? head : kWorker), words);
}

}  // namespace tutti::launch

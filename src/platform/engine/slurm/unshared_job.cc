#include "platform/engine/slurm/unshared_job.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "base/process/command.h"

namespace tutti::engine {
namespace {

// As in <sysexits.h>, and in the script.
constexpr int kUnreached = 69, kStranger = 77, kNoTls = 78;

constexpr absl::string_view kNotExported = "export -n token service plan\n";

// These functions run on every node, some on the first for all. The variables stand before them.
constexpr absl::string_view kFunctions = R"BASH(
patience=60
# secured: sends what comes in to the service by TLS and says what comes back. The service must show the one certificate.
secured() {
  exec timeout $((11 * patience)) openssl s_client -quiet -verify_quiet -verify_return_error -partial_chain -no_check_time \
    -purpose any -CAfile <(printf '%s\n' "$certificate") -connect "$host:$port" 2>"${tls_errors:-/dev/null}"
}

# check_tls: ends a node that could not speak to the service; of 1.1.0 and later is what secured asks for.
check_tls() {
  [ -z "$certificate" ] || openssl s_client -help 2>&1 | grep -q -e -no_check_time || exit 78
}

# call METHOD TARGET [BODY]: what the service answers. 1 without an answer of 2xx, or where it takes more than a minute to
# begin one, or ten to end it, or where a signal was handled meanwhile.
call() {
  local LC_ALL=C version status rest line request speaker code=1
  printf -v request '%s %s HTTP/1.0\r\nAuthorization: Bearer %s\r\nContent-Length: %s\r\n\r\n%s' \
    "$1" "$2" "$token" "${#3}" "$3"
  if [ -n "$certificate" ]; then
    exec 3< <(exec < <(printf '%s' "$request"); echo $BASHPID; secured)
    read -r -u 3 speaker
  else
    exec 3<>"/dev/tcp/$host/$port" || return 1
    printf '%s' "$request" >&3
  fi
  if read -r -t "$patience" -u 3 version status rest; then
    while IFS= read -r -t "$patience" -u 3 line && [ "$line" != $'\r' ]; do :; done
    timeout $((10 * patience)) cat <&3 &
    wait $! && code=0 || kill $!
  fi
  exec 3>&-
  [ $code = 0 ] || [ -z "$speaker" ] || kill $speaker
  [ $code = 0 ] && [ "${status:0:1}" = 2 ]
} 2>/dev/null

# rest MILLISECONDS: by chance up to half of that less, as base::RetryPause rests, so that not all nodes of a job that a
# service left come back to it at once.
rest() {
  local rested
  printf -v rested %04d $(($1 / 2 + RANDOM * $1 / 65536))
  sleep "${rested%???}.${rested: -3}"
}

# fail REASON: for what keeps this node from its part; the service ends the job with it.
fail() {
  local reason=${*//[^[:print:]]/ } try
  reason=${reason//[\"\\]/}
  echo "tutti: $reason" >&2
  for try in {1..25}; do
    call POST "$nodes/$SLURM_NODEID/events?first=1" \
      "{\"kind\": \"finished\", \"ok\": false, \"reason\": \"${reason:0:300}\", \"time\": $(date +%s)}" >/dev/null && break
    rest 1000
  done
  exit 1
}

make_home() {
  local why
  why=$(umask 077; mkdir -p -- "$home" 2>&1) || fail "its folder cannot be made: $why"
  [ -O "$home" ] && [ ! -L "$home" ] || fail "$home is somebody else's"
  chmod 700 "$home"
}

is_program() { [ -f "$1" ] && echo "${program#sha256:}  $1" | sha256sum --check --status; }

# fetch FILE: the launcher from the service, which may be away for a while. Nothing can be told of a failure but the code.
fetch() {
  local begin=$SECONDS pause=1000 tls_errors=$1.tls
  until [ -e "$at/stop" ]; do
    rm -f "$1"
    call GET "${nodes%/nodes}/snapshots/$program" >"$1" && is_program "$1" && rm -f "$tls_errors" && return
    [ $((SECONDS - begin)) -lt 10 ] || ! grep -q -s 'certificate verify failed' "$tls_errors" || exit 77
    [ $((SECONDS - begin)) -lt 600 ] || exit 69
    rest $pause
    [ $pause = 8000 ] || pause=$((2 * pause))
  done
}

launch() {
  "$at/program/tutti" launch --plan "$at/plan.json" >>"$at/launcher.log" 2>&1 &
  launcher=$!
  while wait $launcher; kill -0 $launcher 2>/dev/null; do :; done
}

# remove_containers: those that a launcher has left which died.
remove_containers() {
  "$at/program/tutti" launch-remover "$at" >>"$at/launcher.log" 2>&1 &
  launcher=$!
  while wait $launcher; kill -0 $launcher 2>/dev/null; do :; done
}

on_node() {
  local at=$folder/$SLURM_NODEID mask launcher stopped why try code=0
  exec </dev/null
  trap '[ -z "$launcher" ] || kill -TERM $launcher' TERM
  # Told by tutti: a launcher that finds the file knows.
  trap 'stopped=1; [ ! -d "$at" ] || >"$at/stop"; [ -z "$launcher" ] || kill -TERM $launcher' USR1
  check_tls
  make_home
  mask=$(umask)
  umask 077
  why=$(mkdir -p "$at/program" 2>&1) || fail "its folder cannot be made: $why"
  [ -z "$stopped" ] || >"$at/stop"
  echo $$ >"$at/script"
  printf '%s\n' "$service" >"$at/launcher.json"
  printf '%s\n' "${plan//$node_number/$SLURM_NODEID}" >"$at/plan.json"
  mv "$spread" "$at/program.tar.gz" 2>/dev/null
  is_program "$at/program.tar.gz" || fetch "$at/program.tar.gz"
  if [ ! -e "$at/stop" ]; then
    why=$(tar -xzf "$at/program.tar.gz" -C "$at/program" 2>&1) || fail "the launcher cannot be unpacked: $why"
    rm "$at/program.tar.gz"
    umask "$mask"
    launch
    [ -e "$at/started" ] || fail "its launcher did not begin: $(tail -n 1 "$at/launcher.log")"
    [ -e "$at/done" ] || launch  # the first one died
    for try in 1 2 3; do [ ! -e "$at/containers" ] || remove_containers; done
    [ ! -e "$at/failed" ] || code=1
  fi
  cd /
  [ ! -e "$at/started" ] || [ -e "$at/done" ] || exit 1  # the folder stays, with what was not delivered
  # By another name: who says "stop" just now would make a file in what is being removed.
  mv "$at" "$at.over" && rm -rf "$at.over"
  rmdir "$folder" "${folder%/*}" 2>/dev/null
  exit $code
}

# Slurm may have a second job for what this one is for; the first runs.
is_first() {
  local first
  first=$(squeue --noheader --all --user="$UID" --states=RUNNING,COMPLETING --format='%A %k' |
    awk -v comment="$comment" '$2 == comment { print $1 }' | sort -n | head -n 1)
  [ -z "$first" ] || [ "$first" = "$SLURM_JOB_ID" ]
}
)BASH";

// On the first node, for all of several.
constexpr absl::string_view kSpread = R"BASH(
on_nodes() {
  local at=$folder/first
  check_tls
  make_home
  mkdir -p "$at"
  fetch "$at/program.tar.gz"
  sbcast "$at/program.tar.gz" "$spread" || echo "tutti: each node fetches the launcher by itself" >&2
  rm -rf "$at"
}
tell_nodes() {
  srun --overlap --mem=0 --export=ALL --cpu-bind=none --mpi=none NODES bash -c \
    "at=$(printf %q "$folder")"'/$SLURM_NODEID; [ ! -d "$at" ] || >"$at/stop"; kill -USR1 $(cat "$at/script")' </dev/null
}
trap tell_nodes USR1
on_nodes
share="$(declare -f secured check_tls call rest fail make_home is_program fetch launch remove_containers on_node)
$(declare -p program folder home spread nodes node_number host port certificate patience)"
SRUN bash -c "$share"'
EXPORT
IFS= read -r token; IFS= read -r service; IFS= read -r plan; on_node' <<<"$token
$service
$plan" &
steps=$!
while wait $steps; code=$?; kill -0 $steps 2>/dev/null; do :; done
exit $code
)BASH";

bool UsesStores(const spec::LaunchPlan& plan) {
  const auto has_place = [](const auto& named) { return named.second.place.has_value(); };
  return std::any_of(plan.inputs.begin(), plan.inputs.end(), has_place) ||
         std::any_of(plan.outputs.begin(), plan.outputs.end(), has_place);
}

// One plan for all nodes: `number` stands where a node's own is to be.
std::string PlanOfAll(const Allocation& allocation, const UnsharedJob& job,
                      const std::string& folder, const std::string& home,
                      const std::string& number) {
  spec::LaunchPlan plan = allocation.plan;
  if (UsesStores(plan)) plan.storage_program = job.storage_program;
  plan.directory = absl::StrCat(folder, "/", number);
  plan.service_file = absl::StrCat(plan.directory, "/launcher.json");
  plan.environments_directory = absl::StrCat(home, "/environments");
  nlohmann::json json = nlohmann::json::parse(spec::ToJson(plan));
  json["node_index"] = number;
  return absl::StrReplaceAll(json.dump(), {{absl::StrCat("\"node_index\":\"", number, "\""),
                                            absl::StrCat("\"node_index\":", number)}});
}

std::string Set(absl::string_view name, absl::string_view value) {
  return absl::StrCat(name, "=", base::ShellQuoted(value), "\n");
}

}  // namespace

std::string HomeOnNodes(const std::string& node_folder) {
  return absl::StrCat(node_folder == "/" ? "" : node_folder, "/tutti-", ::getuid());
}

absl::StatusOr<std::string> UnsharedBatchScript(const spec::SlurmSettings& settings,
                                                const Allocation& allocation,
                                                const UnsharedJob& job) {
  const std::string& own_token = allocation.plan.launcher_token;
  spec::Endpoint service = job.service;  // as the nodes are told of it: their token is in the plan
  service.token.clear();
  absl::string_view at = job.service.address;
  const bool spoken = job.service.certificate.empty() ? absl::ConsumePrefix(&at, "http://")
                                                      : absl::ConsumePrefix(&at, "https://");
  if (!spoken || !absl::StrContains(at, ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("nodes that share no folder cannot get to \"", job.service.address,
                     "\": it is not http://HOST:PORT, nor https:// with a certificate"));
  }
  const std::string home = HomeOnNodes(job.node_folder);
  const std::string folder = absl::StrCat(home, "/", job.id, "/", allocation.id);
  const std::string number = base::RandomHex(16);  // which nothing in the plan can be by chance
  std::string script = absl::StrCat(
      "#!/bin/bash\n# Job ", allocation.plan.job_id, " of tutti. Holds a secret.\n",
      kForgetTheCluster,
      "# What was in the environment under these names would hand them on to the job.\n",
      kNotExported, Set("comment", job.comment), Set("host", at.substr(0, at.rfind(':'))),
      Set("port", at.substr(at.rfind(':') + 1)), Set("certificate", job.service.certificate),
      Set("token", own_token), Set("service", spec::ToJson(service)), Set("program", job.program),
      Set("home", home), Set("folder", folder), "spread=", base::ShellQuoted(home),
      "-$SLURM_JOB_ID.tar.gz\n",
      Set("nodes", absl::StrCat("/internal/v1/allocations/", allocation.id, "/nodes")),
      Set("node_number", number), Set("plan", PlanOfAll(allocation, job, folder, home, number)),
      kFunctions, "is_first || exit 0\n", GangScript(allocation.nodes.size()));
  if (allocation.nodes.size() == 1) return script + "on_node\n";
  const std::string count =
      absl::StrCat("--nodes=", allocation.nodes.size(), " --ntasks=", allocation.nodes.size(),
                   " --ntasks-per-node=1");
  return absl::StrCat(
      script, absl::StrReplaceAll(
                  kSpread, {{"NODES", count},
                            {"EXPORT\n", kNotExported},
                            {"SRUN", SrunScript(settings, allocation) + " --kill-on-bad-exit=0"}}));
}

NodesGaveUp WhyNodesGaveUp(int exit_code) {
  if (exit_code == kUnreached) {
    return {.why =
                "no launcher could be fetched from the service within ten minutes: the service "
                "was away, or nodes do not reach its address",
            .may_pass = true};
  }
  if (exit_code == kStranger) {
    return {.why =
                "what answers nodes at the service's address is not the service that began the "
                "job: it shows another certificate"};
  }
  if (exit_code == kNoTls) {
    return {.why =
                "a node of it has no openssl (1.1.0 or later) that runs, by which it fetches the "
                "launcher from a service that speaks TLS: install it there, or start the "
                "service with --no-tls"};
  }
  return {};
}

}  // namespace tutti::engine

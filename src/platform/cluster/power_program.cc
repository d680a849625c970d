#include "platform/cluster/power_program.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "platform/cluster/paths.h"

namespace tutti::cluster {
namespace {

constexpr absl::string_view kProgram = R"sh(#!/bin/sh
MARK
# Slurm calls it with a list of nodes. ACTION is the site's command; NODE names the node it is for.
PATH=$PATH:/usr/sbin:/sbin; export PATH
exec </dev/null >/dev/null 2>&1  # Slurm leaves these closed
logs=LOGS
action() {
COMMAND
}
one() {
  log=$logs/$1.log
  for try in 1 2 3; do
    echo "$(date -u +%FT%TZ) WORD $1, attempt $try" >>"$log"
    if (NODE=$1; export NODE; action) >>"$log" 2>&1 </dev/null; then return 0; fi
    [ $try = 3 ] || sleep $((try * WAIT))
  done
  why=$(tail -n 1 "$log" | tr -cd '[:alnum:] ._:/,-' | cut -c1-120)
  scontrol update nodename="$1" state=DOWN reason="WORD failed: $why; see $log"
  return 1
}
failed=0 tried=
for node in $(scontrol show hostnames "$1"); do one "$node" & tried="$tried $!"; done
for one in $tried; do wait "$one" || failed=1; done
exit $failed
)sh";

// Slurm does not power a node up that is still powering down.
constexpr absl::string_view kKeep = R"sh(#!/bin/sh
MARK
# The nodes that stay are switched on: those that are off, and those that vanished.
PATH=$PATH:/usr/sbin:/sbin; export PATH
exec </dev/null >/dev/null 2>&1
keep() {
  left=LIMIT
  while [ $left -gt 0 ]; do
    case $(scontrol --oneliner show node "$1") in
      '' | *+POWERING_DOWN* | *+POWER_DOWN*) ;;
      *" State=DOWN"*" Reason=Not responding "* | *" State=DOWN"*" Reason=preempted "*)
        scontrol update nodename="$1" state=POWER_DOWN_FORCE ;;
      *" State=DOWN"* | *+DRAIN*) return ;;
      *+POWERED_DOWN*) scontrol update nodename="$1" state=POWER_UP; return ;;
      *) return ;;
    esac
    sleep 1; left=$((left - 1))
  done
}
for node in NODES; do keep $node & done
wait
)sh";

constexpr absl::string_view kKeepNow = R"sh(
as_slurm() { setpriv --reuid slurm --regid slurm --init-groups "$@"; }
as_slurm strigger --get --quiet | grep -q PROGRAM || as_slurm strigger --set --node --down --flags=PERM --program=PROGRAM
as_slurm setsid PROGRAM </dev/null >/dev/null 2>&1 &
)sh";

// One that is down may still be on: it does not answer, or the program failed before.
constexpr absl::string_view kSwitchOff = R"sh(
states=$(scontrol --oneliner show node || true)
on=$(for node in $nodes; do
  case $(echo "$states" | grep "^NodeName=$node " | grep -o ' State=[^ ]*') in
    *=DOWN*) echo $node ;;
    *POWERED_DOWN* | *POWERING_DOWN*) ;;
    *) echo $node ;;
  esac
done)
[ -z "$force" ] || scontrol update nodename=$(echo $nodes | tr ' ' ,) state=DOWN reason='leaves the cluster' || true
failed=$(for node in $on; do (setpriv --reuid slurm --regid slurm --init-groups PROGRAM $node || echo $node) & done; wait)
[ -z "$failed" ] || { echo $failed "could not be switched off; see LOGS there" >&2; exit 1; }
echo "$on"
)sh";

std::string Program(absl::string_view word, const std::string& command) {
  return absl::StrReplaceAll(kProgram, {{"MARK", kMark},
                                        {"LOGS", kPowerLogs},
                                        {"ACTION", word},
                                        {"COMMAND", command},
                                        {"WORD", word},
                                        {"WAIT", "2"}});
}

}  // namespace

std::string ResumeProgram(const Autoscale& scale) { return Program("resume", scale.resume); }

std::string SuspendProgram(const Autoscale& scale) { return Program("suspend", scale.suspend); }

std::string KeepProgram(const Autoscale& scale) {
  const std::vector<std::string> nodes(scale.nodes.begin(), scale.nodes.begin() + scale.min);
  return absl::StrReplaceAll(kKeep, {{"MARK", kMark},
                                     {"NODES", absl::StrJoin(nodes, " ")},
                                     {"LIMIT", absl::StrCat(scale.halt_seconds + 120)}});
}

std::string KeepText() { return absl::StrReplaceAll(kKeepNow, {{"PROGRAM", kKeepProgram}}); }

std::string SwitchOffText(const std::vector<std::string>& nodes, bool force) {
  return absl::StrCat(
      "nodes='", absl::StrJoin(nodes, " "), "' force=", force ? "yes" : "",
      absl::StrReplaceAll(kSwitchOff, {{"PROGRAM", kSuspendProgram}, {"LOGS", kPowerLogs}}));
}

}  // namespace tutti::cluster

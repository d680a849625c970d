#include "platform/cluster/power_program.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "platform/cluster/places.h"

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

std::string SwitchOffText(const std::vector<std::string>& nodes, bool force) {
  return absl::StrCat(
      "nodes='", absl::StrJoin(nodes, " "), "' force=", force ? "yes" : "",
      absl::StrReplaceAll(kSwitchOff, {{"PROGRAM", kSuspendProgram}, {"LOGS", kPowerLogs}}));
}

}  // namespace tutti::cluster

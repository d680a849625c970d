#include "platform/cluster/daemons.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/cluster/paths.h"

namespace tutti::cluster {
namespace {

std::string UnitOf(absl::string_view daemon) {
  return daemon == "munged" ? "munge" : std::string(daemon);
}

std::string PidFileOf(absl::string_view daemon) {
  if (daemon == "munged") return "/run/munge/munged.pid";
  return absl::StrCat("/run/", daemon, ".pid");
}

// A slurmctld that begins before its database answers gives up.
std::string StartDatabaseText(const HostFacts& host, absl::string_view start) {
  return absl::StrCat(
      "log=/var/log/slurm/slurmdbd.log seen=0\n[ ! -f $log ] || seen=$(wc -c <$log)\n", start,
      "address=", host.address, R"sh( left=6000
until timeout 5 bash -c "exec 3<>/dev/tcp/$address/6819" 2>/dev/null; do
  why=$(tail -c +$((seen + 1)) $log 2>/dev/null | grep -E 'fatal: |mysql_real_connect failed' | tail -n 1 | sed 's/^\[[^]]*\] *//')
  [ $left -gt 0 ] || why="no answer at $address:6819; see $log"
  if [ -n "$why" ]; then
)sh",
      StopText(host, "slurmdbd"),
      "    echo \"slurmdbd: $why\" >&2\n    exit 1\n  fi\n"
      "  sleep 0.1; left=$((left - 1))\ndone\n");
}

}  // namespace

std::string WriteFileText(absl::string_view path, absl::string_view content, absl::string_view mode,
                          absl::string_view owner) {
  return absl::StrCat("mkdir -p \"$(dirname ", path, ")\"\n(umask 077; cat >", path,
                      ".new <<'TUTTI_END'\n", content, "TUTTI_END\n)\nchown ", owner, " ", path,
                      ".new\nchmod ", mode, " ", path, ".new\nmv ", path, ".new ", path, "\n");
}

std::string StopText(const HostFacts& host, absl::string_view daemon) {
  if (host.systemd) return absl::StrCat("systemctl stop ", UnitOf(daemon), "\n");
  const std::string file = PidFileOf(daemon);
  // The process is ended only if the number is still that daemon's.
  return absl::StrCat("pid=$(cat ", file, " 2>/dev/null || true)\n",
                      "if [ -n \"$pid\" ] && [ \"$(cat /proc/$pid/comm 2>/dev/null)\" = ", daemon,
                      " ]; then\n  kill \"$pid\"\n  left=1200\n",
                      "  while [ -d /proc/$pid ] && [ $left -gt 0 ]; do sleep 0.05; "
                      "left=$((left - 1)); done\n",
                      "  [ ! -d /proc/$pid ] || { echo \"", daemon,
                      " does not end\" >&2; exit 1; }\nfi\n");
}

std::string StartText(const HostFacts& host, absl::string_view daemon) {
  if (host.systemd) {
    const std::string start =
        absl::StrCat("systemctl daemon-reload\nsystemctl enable --quiet ", UnitOf(daemon),
                     "\nsystemctl restart ", UnitOf(daemon), "\n");
    return daemon == "slurmdbd" ? StartDatabaseText(host, start) : start;
  }
  if (daemon == "slurmdbd") return StartDatabaseText(host, "slurmdbd\n");
  if (daemon == "munged") {
    return "install -d -o munge -g munge -m 0755 /run/munge\n"
           "install -d -o munge -g munge -m 0700 /var/log/munge /var/lib/munge\n"
           "setpriv --reuid munge --regid munge --init-groups munged\n";
  }
  if (daemon == "slurmd") return absl::StrCat(". ", kSlurmdOptions, "\nslurmd $SLURMD_OPTIONS\n");
  return absl::StrCat(daemon, "\n");
}

std::string InstallText(const std::vector<std::string>& packages, absl::string_view options) {
  // apt must not ask: it would read its answer from the rest of this script. Files of tutti's stay.
  return absl::StrCat(
      "DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1 apt-get install -y -qq "
      "--no-install-recommends -o Dpkg::Options::=--force-confold ",
      options, " ", absl::StrJoin(packages, " "), " </dev/null\n");
}

std::string DrainText(const std::string& node, int wait_seconds) {
  return absl::StrCat("node=", node, " left=", wait_seconds, R"sh(
scontrol update nodename=$node state=DRAIN reason='leaves the cluster'
while :; do
  if jobs=$(squeue -h -w $node -t running,configuring,completing,suspended -o %A); then
    [ -n "$jobs" ] || break
    jobs="runs jobs $(echo $jobs)"
  else
    jobs="has jobs or none: squeue fails"
  fi
  [ $left -gt 0 ] || { echo "$node still $jobs; it takes no new ones: run this again, or take it back by \`scontrol update nodename=$node state=RESUME\`" >&2; exit 1; }
  sleep 1; left=$((left - 1))
done
)sh");
}

std::string EndJobsText(absl::Duration patience) {
  return absl::StrCat("end=$(( $(date +%s) + ", absl::ToInt64Seconds(patience), " ))\n", R"sh(
while :; do
  if jobs=$(squeue -h -o %A); then
    [ -n "$jobs" ] || break
    jobs=$(echo "$jobs" | sort -u)
    scancel $jobs || true
    still="jobs do not end: $(echo $jobs)"
  else
    still="jobs may run on: squeue fails"
  fi
  [ "$(date +%s)" -lt $end ] || { echo "$still" >&2; exit 1; }
  sleep 1
done
)sh");
}

}  // namespace tutti::cluster

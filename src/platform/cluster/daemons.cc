#include "platform/cluster/daemons.h"

#include "absl/strings/str_cat.h"
#include "platform/cluster/places.h"

namespace tutti::cluster {
namespace {

std::string UnitOf(absl::string_view daemon) {
  return daemon == "munged" ? "munge" : std::string(daemon);
}

std::string PidFileOf(absl::string_view daemon) {
  if (daemon == "munged") return "/run/munge/munged.pid";
  return absl::StrCat("/run/", daemon, ".pid");
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
  // Only while the number is still that daemon's.
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
    return absl::StrCat("systemctl daemon-reload\nsystemctl enable --quiet ", UnitOf(daemon),
                        "\nsystemctl restart ", UnitOf(daemon), "\n");
  }
  if (daemon == "munged") {
    return "install -d -o munge -g munge -m 0755 /run/munge\n"
           "install -d -o munge -g munge -m 0700 /var/log/munge /var/lib/munge\n"
           "setpriv --reuid munge --regid munge --init-groups munged\n";
  }
  if (daemon == "slurmd") return absl::StrCat(". ", kSlurmdOptions, "\nslurmd $SLURMD_OPTIONS\n");
  return absl::StrCat(daemon, "\n");
}

std::string DrainText(const std::string& node, int wait_seconds) {
  return absl::StrCat("node=", node, " left=", wait_seconds, R"sh(
scontrol update nodename=$node state=DRAIN reason='leaves the cluster'
while :; do
  if jobs=$(squeue -h -w $node -t running,completing,suspended -o %A); then
    [ -n "$jobs" ] || break
    jobs="runs jobs $(echo $jobs)"
  else
    jobs="has jobs or none: squeue fails"
  fi
  [ $left -gt 0 ] || { echo "$node still $jobs" >&2; exit 1; }
  sleep 1; left=$((left - 1))
done
)sh");
}

}  // namespace tutti::cluster

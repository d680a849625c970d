#include "platform/cluster/host_facts.h"

#include <algorithm>
#include <array>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "platform/cluster/mounts/nfs_mount.h"
#include "platform/cluster/paths.h"

namespace tutti::cluster {
namespace {

constexpr size_t kLongestValue = 300;

// lscpu counts each core once: lines "CPU,CORE,SOCKET". An nvidia-smi that hangs in the kernel does
// not end by being killed, so nothing waits for it.
constexpr absl::string_view kProbe = R"sh(
PATH=$PATH:/usr/sbin:/sbin; export PATH LC_ALL=C
echo "name=$(hostname -s 2>/dev/null || uname -n | cut -d. -f1)"
set -- $1; echo "address=${3:-}"
. /etc/os-release 2>/dev/null; echo "system=${ID:-unknown} ${VERSION_ID:-}"
command -v apt-get >/dev/null && echo apt=yes
[ -d /run/systemd/system ] && echo systemd=yes
lscpu -p=CPU,CORE,SOCKET 2>/dev/null | grep -v '^#' | awk -F, '
  { cpus++; if (!(($2, $3) in core)) { core[$2, $3]; cores++ }; if (!($3 in socket)) { socket[$3]; sockets++ } }
  END { if (cpus) print "topology=" sockets " " cores " " cpus }'
echo "cpus=$(nproc)"
awk '/^MemTotal:/ { print "memory_mib=" int($2 / 1024) }' /proc/meminfo
{ timeout 25 nvidia-smi -q 2>/dev/null & } |
  timeout 20 awk -F ' *: ' '/^ *Product Name/ { name = $2 } /^ *Minor Number *: [0-9]/ { print "gpu=" $2 " " name }'
[ $? != 124 ] || echo gpus_hang=yes
if [ "$(stat -fc %T /sys/fs/cgroup 2>/dev/null)" = cgroup2fs ]; then echo cgroup=v2
elif mkdir /sys/fs/cgroup/memory/tutti-probe 2>/dev/null; then rmdir /sys/fs/cgroup/memory/tutti-probe; echo cgroup=v1; fi
for c in munged slurmctld slurmd slurmdbd srun mount.nfs4; do command -v $c >/dev/null && echo "command=$c"; done
for f in $files; do
  [ -f $f ] || continue
  echo "file=$(sha256sum <$f | cut -d' ' -f1) $f"
  head -n 2 $f | grep -q '^# Made by tutti cluster' && echo "marked=$f"
done
for f in slurm cgroup gres slurmdbd; do
  for d in /etc/slurm /etc/slurm-llnl /run/slurm/conf /var/spool/slurmd/conf-cache; do [ -f $d/$f.conf ] && echo configured=yes; done
done
[ -f /etc/slurm/slurm.conf ] && ! grep -q '^# Made by tutti cluster' /etc/slurm/slurm.conf && echo foreign=yes
cat /proc/[0-9]*/comm 2>/dev/null | grep -xE 'munged|slurmctld|slurmd|slurmdbd' | sort -u | sed 's/^/running=/'
if grep -qsw nfs4 /proc/filesystems || modprobe -qn nfs4 2>/dev/null; then echo nfs_client=yes; fi
grep -hs '[ ,]x-tutti[ ,]' /etc/fstab | sed 's/^/mount_line=/'
awk '$2 !~ "^/(proc|sys|dev|run)(/|$)" && $2 != "/" && length($1 $2) < 250 { print "mounted=" $2 " " $1 }' /proc/self/mounts
echo end=yes
)sh";

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() < 64 && text[0] != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; });
}

bool IsAddress(absl::string_view text) {
  return !text.empty() && text.size() < 64 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c) || c == '.' || c == ':';
         });
}

// "sockets cores cpus", each divided by the one before.
bool ReadTopology(absl::string_view value, HostFacts& facts) {
  const std::vector<absl::string_view> words = absl::StrSplit(value, ' ');
  std::array<int, 3> numbers{};
  if (words.size() != numbers.size()) return false;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!absl::SimpleAtoi(words[i], &numbers[i]) || numbers[i] < 1) return false;
  }
  const auto [sockets, cores, cpus] = numbers;
  if (cores % sockets != 0 || cpus % cores != 0) {  // uneven: as so many cores
    facts.cores_per_socket = cpus;
    return true;
  }
  facts.sockets = sockets;
  facts.cores_per_socket = cores / sockets;
  facts.threads_per_core = cpus / cores;
  return true;
}

bool ReadUsableCpus(absl::string_view value, HostFacts& facts) {
  int usable = 0;
  if (!absl::SimpleAtoi(value, &usable) || usable < 1) return false;
  if (usable == facts.cpus()) return true;
  facts.fewer_cpus = true;
  facts.sockets = facts.threads_per_core = 1;
  facts.cores_per_socket = usable;
  return true;
}

// "3 NVIDIA H200"
bool ReadGpu(absl::string_view value, HostFacts& facts) {
  const std::pair<absl::string_view, std::string> parts =
      absl::StrSplit(value, absl::MaxSplits(' ', 1));
  Gpu& gpu = facts.gpus.emplace_back();
  gpu.model = parts.second;
  return absl::SimpleAtoi(parts.first, &gpu.minor) && gpu.minor >= 0 && facts.gpus.size() <= 64;
}

bool IsProbed(absl::string_view file) {
  return std::find(kProbedFiles.begin(), kProbedFiles.end(), file) != kProbedFiles.end();
}

bool ReadFile(absl::string_view value, HostFacts& facts) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(value, absl::MaxSplits(' ', 1));
  if (!IsProbed(parts.second)) return false;
  facts.files[std::string(parts.second)] = std::string(parts.first);
  return true;
}

bool ReadMark(absl::string_view value, HostFacts& facts) {
  facts.marked.insert(std::string(value));
  return IsProbed(value);
}

bool ReadMountLine(absl::string_view value, HostFacts& facts) {
  facts.mount_lines.insert(std::string(value));
  return IsFstabLine(value);
}

// "/mnt/photos 10.0.0.5:/photos"; of several at one path the last is on top.
bool ReadMounted(absl::string_view value, HostFacts& facts) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(value, absl::MaxSplits(' ', 1));
  facts.mounted[parts.first] = parts.second;
  return true;
}

using Reader = std::function<bool(absl::string_view, HostFacts&)>;

Reader Text(std::string HostFacts::*field, bool (*fits)(absl::string_view)) {
  return [field, fits](absl::string_view value, HostFacts& facts) {
    facts.*field = std::string(value);
    return fits(value);
  };
}

Reader Yes(bool HostFacts::*field) {
  return [field](absl::string_view value, HostFacts& facts) {
    facts.*field = value == "yes";
    return facts.*field;
  };
}

Reader Word(std::set<std::string> HostFacts::*field) {
  return [field](absl::string_view value, HostFacts& facts) {
    (facts.*field).insert(std::string(value));
    return true;
  };
}

const std::map<std::string, Reader, std::less<>>& Readers() {
  static const auto& readers = *new std::map<std::string, Reader, std::less<>>{
      {"name", Text(&HostFacts::name, &IsName)},
      {"address", Text(&HostFacts::address, &IsAddress)},
      {"system", Text(&HostFacts::system, [](absl::string_view) { return true; })},
      {"apt", Yes(&HostFacts::has_apt)},
      {"systemd", Yes(&HostFacts::systemd)},
      {"topology", &ReadTopology},
      {"cpus", &ReadUsableCpus},
      {"memory_mib",
       [](absl::string_view value, HostFacts& facts) {
         return absl::SimpleAtoi(value, &facts.memory_mib) && facts.memory_mib > 0;
       }},
      {"gpu", &ReadGpu},
      {"gpus_hang", Yes(&HostFacts::gpus_hang)},
      {"cgroup",
       Text(&HostFacts::cgroup, [](absl::string_view v) { return v == "v1" || v == "v2"; })},
      {"command", Word(&HostFacts::commands)},
      {"file", &ReadFile},
      {"marked", &ReadMark},
      {"foreign", Yes(&HostFacts::foreign_configuration)},
      {"configured", Yes(&HostFacts::configured)},
      {"running", Word(&HostFacts::running)},
      {"nfs_client", Yes(&HostFacts::nfs_client)},
      {"mount_line", &ReadMountLine},
      {"mounted", &ReadMounted},
      {"end", [](absl::string_view, HostFacts&) { return true; }}};
  return readers;
}

}  // namespace

std::string ProbeScript() {
  return absl::StrCat("files='", absl::StrJoin(kProbedFiles, " "), "'", kProbe);
}

absl::StatusOr<HostFacts> ReadFacts(const std::string& host, absl::string_view text) {
  HostFacts facts;
  facts.host = host;
  std::set<absl::string_view> seen;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    const auto reader = Readers().find(entry.first);
    if (reader == Readers().end()) continue;  // what a login prints of its own
    if (entry.second.size() > kLongestValue || !reader->second(entry.second, facts)) {
      return absl::InvalidArgumentError(
          absl::StrCat(host, ": cannot use \"", line.substr(0, 80), "\" of this host"));
    }
    seen.insert(entry.first);
  }
  for (const absl::string_view needed : {"name", "address", "cpus", "memory_mib", "end"}) {
    if (seen.contains(needed)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(host, ": does not tell its ", needed == "end" ? "state to the end" : needed,
                     "; tutti cluster needs Linux with a POSIX shell, awk and coreutils"));
  }
  return facts;
}

}  // namespace tutti::cluster

#include "platform/launch/mpi/singleton_watch.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/child_process.h"

namespace tutti::launch {
namespace {

constexpr uint64_t kLargestMaps = 64 << 20, kLargestEnviron = 4 << 20;
// An MPI library is loaded as programs begin, and stays at least for the time of MPI_Init.
constexpr absl::Duration kBegin = absl::Seconds(30);
constexpr absl::Duration kInterval = absl::Milliseconds(100), kLaterInterval = absl::Seconds(5);
constexpr int kShare = 20;

int RankOf(pid_t pid, const std::vector<RankLeader>& leaders) {
  for (const auto& [rank, processes] : ProcessesByRank(leaders, {pid})) {
    if (std::count(processes.begin(), processes.end(), pid) > 0) return rank;
  }
  return -1;
}

struct Suspect {
  pid_t pid;
  MpiSingleton singleton;
};

std::optional<Suspect> FindSingleton(const std::vector<RankLeader>& leaders) {
  for (const pid_t pid : base::Descendants(::getpid())) {
    const auto maps = base::ReadFile(absl::StrCat("/proc/", pid, "/maps"), kLargestMaps);
    std::string library = OpenMpiIn(maps.value_or(""));
    if (library.empty()) continue;
    const auto environ = base::ReadFile(absl::StrCat("/proc/", pid, "/environ"), kLargestEnviron);
    if (!LacksMpirun(environ.value_or(""))) continue;
    return Suspect{pid, MpiSingleton{RankOf(pid, leaders), std::move(library)}};
  }
  return std::nullopt;
}

}  // namespace

std::optional<MpiSingleton> SingletonWatch::Look(const std::vector<RankLeader>& leaders) {
  const absl::Duration start = base::SteadyNow();
  std::optional<Suspect> found = FindSingleton(leaders);
  const absl::Duration end = base::SteadyNow();
  interval_ = IntervalAfter(end - began_, end - start);
  const pid_t before = std::exchange(suspect_, found ? found->pid : 0);
  if (!found) return std::nullopt;
  if (found->pid == before) return std::move(found->singleton);
  interval_ = std::min(interval_, kInterval);
  return std::nullopt;
}

absl::Duration SingletonWatch::IntervalAfter(absl::Duration since_begin, absl::Duration cost) {
  return std::max(kShare * cost, since_begin < kBegin ? kInterval : kLaterInterval);
}

bool LacksMpirun(absl::string_view environ) {
  const std::vector<absl::string_view> variables = absl::StrSplit(environ, '\0');
  const auto has = [&](absl::string_view name) {
    return std::any_of(variables.begin(), variables.end(), [&](absl::string_view variable) {
      return absl::ConsumePrefix(&variable, name) && absl::StartsWith(variable, "=");
    });
  };
  return has("TUTTI_JOB_ID") && !has("PMIX_NAMESPACE");
}

std::string OpenMpiIn(absl::string_view maps) {
  if (!absl::StrContains(maps, "/libmpi.so.40")) return "";  // of all versions from 2 to 5
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    const size_t path = line.find('/');
    if (path != line.npos && absl::StrContains(line, "/libmpi.so.40")) {
      return std::string(line.substr(path));
    }
  }
  return "";
}

}  // namespace tutti::launch

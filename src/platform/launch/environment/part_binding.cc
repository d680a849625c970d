#include "platform/launch/environment/part_binding.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::launch {
namespace {

cpu_set_t SetOf(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    if (core < CPU_SETSIZE) CPU_SET(core, &set);
  }
  return set;
}

// Threads that are there already do not follow the first one.
absl::Status BindAllThreads(const cpu_set_t& set, const std::vector<int>& cores) {
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    pid_t id = 0;
    if (!absl::SimpleAtoi(thread.path().filename().string(), &id)) continue;
    if (::sched_setaffinity(id, sizeof set, &set) == 0 || errno == ESRCH) continue;
    return absl::InternalError(
        absl::StrCat("cannot run on processors ", CoreList(cores), ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status KeepToPart(const spec::LaunchPlan& plan, NodeFacts& facts) {
  if (!plan.has_part()) return absl::OkStatus();
  facts.cores = static_cast<int>(plan.cores.size());
  facts.gpus = plan.gpus;
  return BindAllThreads(SetOf(plan.cores), plan.cores);
}

std::vector<int> CoresOfRank(const spec::LaunchPlan& plan, int local_rank) {
  const size_t size = plan.cores.size();
  const auto ranks = static_cast<size_t>(plan.node().process_count);
  const auto rank = static_cast<size_t>(local_rank);
  if (ranks == 0 || size < ranks || rank >= ranks) return plan.cores;
  return {plan.cores.begin() + static_cast<std::ptrdiff_t>(size * rank / ranks),
          plan.cores.begin() + static_cast<std::ptrdiff_t>(size * (rank + 1) / ranks)};
}

std::vector<int> CoresIfNotAll() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  if (CPU_COUNT(&set) >= ::sysconf(_SC_NPROCESSORS_ONLN)) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

RankCores::RankCores(const spec::LaunchPlan& plan, int local_rank)
    : cores_(SetOf(CoresOfRank(plan, local_rank))), has_any_(plan.has_part()) {}

int RankCores::Enter(pid_t pid) const {
  if (!has_any_ || ::sched_setaffinity(pid, sizeof cores_, &cores_) == 0) return 0;
  return errno;
}

std::string CoreList(const std::vector<int>& cores) {
  std::string text;
  for (size_t first = 0, last = 0; first < cores.size(); first = ++last) {
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", cores[first]);
    if (last > first) absl::StrAppend(&text, "-", cores[last]);
  }
  return text;
}

}  // namespace tutti::launch

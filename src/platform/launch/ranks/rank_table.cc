#include "platform/launch/ranks/rank_table.h"

#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::launch {

void RankTable::Add(std::unique_ptr<RankProcess> rank) {
  events_->Append("started", {{"rank", rank->rank()}, {"pid", rank->pid()}});
  ranks_.push_back(std::move(rank));
}

absl::Status RankTable::CheckMayBegin(int rank) const {
  const int local = rank - plan_.node().first_rank;
  if (local >= 0 && local < plan_.node().process_count && Find(rank) == nullptr) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("rank ", rank, " was placed on node ", plan_.node().name));
}

RankProcess* RankTable::Find(int rank) const {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                  [rank](const auto& r) { return r->rank() == rank; });
  return found == ranks_.end() ? nullptr : found->get();
}

RankProcess* RankTable::FindByPid(pid_t pid) const {
  const auto found =
      std::find_if(ranks_.begin(), ranks_.end(), [pid](const auto& r) { return r->pid() == pid; });
  return found == ranks_.end() ? nullptr : found->get();
}

bool RankTable::HasAll() const {
  return ranks_.size() >= static_cast<size_t>(plan_.node().process_count);
}

bool RankTable::AnyRuns() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank->ended(); });
}

bool RankTable::AnyFailed() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->failed(); });
}

std::vector<RankLeader> RankTable::Running() const {
  std::vector<RankLeader> leaders;
  for (const auto& rank : ranks_) {
    if (!rank->ended()) leaders.push_back({rank->rank(), rank->pid()});
  }
  return leaders;
}

std::vector<OutputPipe*> RankTable::Pipes() const {
  std::vector<OutputPipe*> pipes;
  for (const auto& rank : ranks_) pipes.insert(pipes.end(), {&rank->out(), &rank->err()});
  return pipes;
}

base::ExitStatus RankTable::Reap(RankProcess& rank, bool stopped) {
  nlohmann::json exit = rank.Reap(stopped || rank.stop_requested(), KilledByKernel());
  const base::ExitStatus status = {.code = exit["code"], .signal = exit["signal"]};
  Report(std::move(exit));
  return status;
}

void RankTable::End(RankProcess& rank, base::ExitStatus status, bool stopped) {
  Report(rank.End(status, stopped || rank.stop_requested(), KilledByKernel()));
}

void RankTable::GiveUp() {
  for (const auto& rank : ranks_) {
    if (rank->ended()) continue;
    Report(rank->End({.signal = SIGKILL}, /*stopped=*/true, KernelKills::kUnknown));
  }
}

void RankTable::ReportMpiFailure(const MpiFailure& failure) {
  if (failure.rank < 0 || failure.error.empty()) return;
  AppendMpiFailure(*events_, failure);
}

void RankTable::Report(nlohmann::json exit) {
  failed_ = failed_ || exit.value("code", 0) != 0 || exit.value("signal", 0) != 0;
  events_->Append("exited", std::move(exit));
  delivery_->Wake();
}

KernelKills RankTable::KilledByKernel() const {
  const std::optional<int64_t> now = KernelOutOfMemoryKills();
  if (!now || !kernel_kills_before_) return KernelKills::kUnknown;
  return *now > *kernel_kills_before_ ? KernelKills::kSome : KernelKills::kNone;
}

void AppendMpiFailure(EventLog& events, const MpiFailure& failure) {
  events.Append("mpi_failure", {{"rank", failure.rank},
                                {"error", failure.error},
                                {"abort", failure.abort},
                                {"left", failure.left}});
}

}  // namespace tutti::launch

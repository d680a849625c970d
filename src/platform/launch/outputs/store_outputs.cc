#include "platform/launch/outputs/store_outputs.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/status.h"
#include "base/threads/retry_pause.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);  // at whether it is cancelled
constexpr absl::Duration kBetweenWords = absl::Minutes(1);        // of the job's state
constexpr int kShareOfLooks = 20;  // one that takes long is as many times as long not repeated

// Nothing but another job file or another service mends these.
bool IsForGood(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
}

// Waits; false once it is cancelled.
bool Pause(absl::Duration pause, const std::atomic<bool>& cancelled) {
  const base::Deadline end = base::Deadline::After(pause);
  while (!cancelled && !end.Expired()) absl::SleepFor(std::min(kBetweenLooks, end.Remaining()));
  return !cancelled;
}

}  // namespace

bool HasStoredOutputs(const spec::LaunchPlan& plan) {
  return std::any_of(plan.outputs.begin(), plan.outputs.end(),
                     [](const auto& named) { return named.second.place.has_value(); });
}

absl::StatusOr<std::unique_ptr<StoreOutputs>> StoreOutputs::Open(const spec::LaunchPlan& plan,
                                                                 const StoreParts& parts,
                                                                 EventLog* events,
                                                                 StoreTimes times) {
  auto made = absl::WrapUnique(new StoreOutputs(plan, events, times));
  for (const auto& [name, output] : plan.outputs) {
    if (!output.place) continue;
    TUTTI_ASSIGN_OR_RETURN(OutputStore store, OutputStore::Open(plan, name, parts));
    made->stores_.push_back(std::move(store));
  }
  return made;
}

StoreOutputs::~StoreOutputs() {
  abandoned_ = true;
  EndThread();
}

absl::Status StoreOutputs::Check() {
  for (OutputStore& store : stores_) TUTTI_RETURN_IF_ERROR(store.Check());
  return absl::OkStatus();
}

void StoreOutputs::Begin() {
  thread_ = std::thread([this] { PutWhileItRuns(); });
}

// A disk or a folder that answers slowly is looked at seldom.
void StoreOutputs::PutWhileItRuns() {
  base::RetryPause pause(times_.first_pause, times_.longest_pause);
  while (true) {
    const absl::Duration began = base::SteadyNow();
    absl::Status put;
    for (OutputStore& store : stores_) put.Update(store.PutFinished(abandoned_));
    absl::Duration wait =
        std::max(times_.between_looks, kShareOfLooks * (base::SteadyNow() - began));
    if (put.ok()) {
      pause.Reset();
      wait = std::min(wait, times_.between_looks * kShareOfLooks);
    } else {
      if (!absl::IsCancelled(put)) spdlog::warn("outputs: {}", put.ToString());
      wait = std::max(times_.between_looks, pause.Next());
    }
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&processes_ended_), wait)) return;
  }
}

void StoreOutputs::EndThread() {
  {
    absl::MutexLock lock(&mutex_);
    processes_ended_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

// What it puts is taken to its end, since that is to be there anyway.
void StoreOutputs::AwaitThread(const std::atomic<bool>& cancelled) {
  if (!thread_.joinable()) return;
  std::atomic<bool> has_ended = false;
  std::thread watch([&] {
    while (!has_ended && !cancelled) absl::SleepFor(kBetweenLooks);
    if (cancelled) abandoned_ = true;
  });
  EndThread();
  has_ended = true;
  watch.join();
}

absl::Status StoreOutputs::Finish(bool again, const std::atomic<bool>& cancelled) {
  AwaitThread(cancelled);
  absl::Status first;
  const base::Deadline end = base::Deadline::After(times_.limit);
  for (OutputStore& store : stores_) first.Update(FinishOne(store, again, end, cancelled));
  is_whole_ = first.ok();
  return first;
}

absl::Status StoreOutputs::FinishOne(OutputStore& store, bool again, base::Deadline end,
                                     const std::atomic<bool>& cancelled) {
  if (store.HasUnstored()) {
    Say(absl::StrCat("putting output \"", store.name(), "\" into ", store.Described()));
    failure_said_ = -absl::InfiniteDuration();
  }
  base::RetryPause pause(times_.first_pause, times_.longest_pause);
  while (true) {
    absl::Status put = store.PutAll(cancelled);
    if (put.ok() || absl::IsCancelled(put)) return put;
    if (!again || IsForGood(put) || end.Expired()) {
      return absl::Status(put.code(),
                          absl::StrCat(put.message(), "; what is not in the store is with the ",
                                       "job's results (tutti job download)"));
    }
    spdlog::warn("{}", put.ToString());
    if (base::SteadyNow() - failure_said_ > kBetweenWords) {
      Say(absl::StrCat(put.message(), "; it is tried again until it is there, for ",
                       absl::FormatDuration(times_.limit), " at most"));
      failure_said_ = base::SteadyNow();
    }
    if (!Pause(std::min(pause.Next(), end.Remaining()), cancelled)) {
      return absl::CancelledError("told to end while it put the job's outputs into their stores");
    }
  }
}

void StoreOutputs::Say(const std::string& reason) {
  if (reason == said_) return;
  said_ = reason;
  events_->Append("storing", {{"reason", reason}});
}

std::vector<std::filesystem::path> StoreOutputs::WriteManifests(
    const std::filesystem::path& folder) const {
  std::vector<std::filesystem::path> files;
  for (const OutputStore& store : stores_) {
    const std::filesystem::path file =
        folder / absl::StrCat(store.name(), ".node-", plan_.node_index, ".json");
    const absl::Status written = store.WriteManifest(file, is_whole_);
    if (written.ok()) files.push_back(file);
    if (!written.ok()) spdlog::warn("{}", written.ToString());
  }
  return files;
}

}  // namespace tutti::launch

#include "platform/launch/outputs/store_outputs.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/outputs/stored_files.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);  // at whether it is cancelled
constexpr absl::Duration kBetweenWords = absl::Minutes(1);        // of the job's state
constexpr int kShareOfLooks = 20;  // one that takes long is as many times as long not repeated
constexpr absl::Duration kHalfWritten = absl::Seconds(10);  // before the launcher died
constexpr char kAlive[] =
    ".alive";  // no output's name, beside the lists of what is stored; its time counts
constexpr absl::Duration kUntilSaid = absl::Seconds(5);
constexpr size_t kLongestOutputLine = 3000;

// Nothing but another job file, another service or another name mends these. What else a store has
// against one file somebody may remove there.
bool IsForGood(const absl::Status& status) {
  const bool is_of_disk = storage::SourceOf(status) == storage::FaultSource::kDisk;
  if (storage::ObjectOf(status).empty()) {
    return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status);
  }
  return absl::IsInvalidArgument(status) && !is_of_disk;
}

// Tells the job's user what became of an output that is not in its store as a whole.
std::string LineOf(OutputStore& store, const absl::Status& put) {
  std::string missing = store.Missing();
  if (missing.empty()) missing = "the list of its files";
  const std::string why = absl::IsCancelled(put)
                              ? absl::StrCat("output \"", store.name(), "\": ", put.message())
                              : std::string(put.message());
  return base::BoundedUtf8(absl::StrCat(why, "; not in ", store.Described(), ": ", missing,
                                        ", which the job's results have (tutti job download)"),
                           kLongestOutputLine);
}

// Joins both errors, with the code of the first.
void Add(absl::Status more, absl::Status& all) {
  if (all.ok()) {
    all = std::move(more);
  } else {
    all = absl::Status(
        all.code(),
        base::BoundedUtf8(absl::StrCat(all.message(), "; ", more.message()), kLongestOutputLine));
  }
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
  auto made = absl::WrapUnique(new StoreOutputs(plan, parts, events, times));
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
  for (OutputStore& store : stores_) store.TrustEarlier();
  thread_ = std::thread([this] { PutWhileItRuns(); });
  alive_ = std::thread([this] { NoteAliveWhileItRuns(); });
}

// This runs on a thread of its own: a put may take hours.
void StoreOutputs::NoteAliveWhileItRuns() {
  while (true) {
    NoteAlive();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&processes_ended_), times_.between_looks)) return;
  }
}

// A disk or a folder that answers slowly is looked at seldom.
void StoreOutputs::PutWhileItRuns() {
  std::vector<Turn> turns(
      stores_.size(),
      Turn{.pause = base::RetryPause(times_.patience.first_pause, times_.patience.longest_pause)});
  while (true) {
    const absl::Duration began = parts_.steady();
    PutTurn(turns);
    const absl::Duration wait =
        std::min(std::max(times_.between_looks, kShareOfLooks * (parts_.steady() - began)),
                 times_.between_looks * kShareOfLooks);
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&processes_ended_), wait)) return;
  }
}

// Notes it for the launcher that may follow, by the clock of the disk that the outputs are on.
void StoreOutputs::NoteAlive() const {
  const std::filesystem::path file = NodeFolders(plan_.directory).stored() / kAlive;
  const absl::Status noted = base::ReplaceFile(file, "");
  if (!noted.ok()) spdlog::warn("{}", noted.ToString());
}

// What was written to shortly before the launcher died, or after it, may be half of a file.
absl::Time StoreOutputs::UnfinishedSince() const {
  const auto alive = StateOf(NodeFolders(plan_.directory).stored() / kAlive);
  if (!alive.ok()) return absl::InfinitePast();
  return absl::FromUnixNanos(alive->modified) - kHalfWritten;
}

void StoreOutputs::PutTurn(std::vector<Turn>& turns) {
  for (size_t i = 0; i < stores_.size(); ++i) {
    Turn& turn = turns[i];
    if (parts_.steady() < turn.next) continue;
    const absl::Status put =
        stores_[i].PutFinished({abandoned_, base::Deadline::After(times_.patience.limit)});
    if (put.ok()) {
      turn.pause.Reset();
      continue;
    }
    if (!absl::IsCancelled(put))
      spdlog::warn("output \"{}\": {}", stores_[i].name(), put.ToString());
    turn.next = parts_.steady() + turn.pause.Next();
  }
}

void StoreOutputs::EndThread() {
  {
    absl::MutexLock lock(&mutex_);
    processes_ended_ = true;
  }
  if (thread_.joinable()) thread_.join();
  if (alive_.joinable()) alive_.join();
}

// What it puts is taken to its end, since that is to be there anyway.
void StoreOutputs::AwaitThread(const PutLimits& limits) {
  if (!thread_.joinable()) return;
  std::atomic<bool> has_ended = false;
  std::thread watch([&] {
    const base::Deadline said = base::Deadline::After(kUntilSaid);
    while (!has_ended && !limits.cancelled && !limits.deadline.Expired()) {
      if (said.Expired()) Say("what goes to the stores of the job's outputs already is awaited");
      absl::SleepFor(kBetweenLooks);
    }
    if (!has_ended) abandoned_ = true;
  });
  EndThread();
  has_ended = true;
  watch.join();
}

absl::Status StoreOutputs::Finish(Storing how, const std::atomic<bool>& cancelled) {
  const PutLimits limits{cancelled, base::Deadline::After(times_.patience.limit)};
  AwaitThread(limits);
  std::vector<OutputStore*> left;
  for (OutputStore& store : stores_) {
    if (how == Storing::kFinishedOnly) store.LeaveOutSince(UnfinishedSince());
    if (how == Storing::kUntilThere) store.Doubt();
    left.push_back(&store);
  }
  absl::Status lost;
  base::RetryPause pause(times_.patience.first_pause, times_.patience.longest_pause);
  while (true) {
    const absl::Status failure = PutRound(how, limits, left, lost);
    if (left.empty()) break;
    SayFailure(failure);
    base::PauseUnlessCancelled(std::min(pause.Next(), limits.deadline.Remaining()), cancelled);
  }
  for (const OutputStore& store : stores_) {
    const std::string left_out = store.LeftOut();
    if (left_out.empty()) continue;
    events_->Append("storing",
                    {{"note", absl::StrCat("output \"", store.name(), "\": ", left_out)}});
  }
  is_whole_ = lost.ok() && how != Storing::kFinishedOnly;
  return lost;
}

absl::Status StoreOutputs::PutRound(Storing how, const PutLimits& limits,
                                    std::vector<OutputStore*>& left, absl::Status& lost) {
  absl::Status failure;
  std::erase_if(left, [&](OutputStore* store) {
    const bool has_failed = failure_said_ != -absl::InfiniteDuration();
    if (!has_failed && store->HasUnstored().value_or(true)) {
      Say(absl::StrCat("putting output \"", store->name(), "\" into ", store->Described()));
    }
    const absl::Status put = store->PutAll(limits);
    if (put.ok()) return true;
    const bool ends = limits.cancelled || limits.deadline.Expired() ||
                      how != Storing::kUntilThere || IsForGood(put);
    if (ends) {
      const absl::StatusCode code = limits.cancelled ? absl::StatusCode::kCancelled : put.code();
      Add(absl::Status(code, LineOf(*store, put)), lost);
    } else {
      spdlog::warn("{}", put.ToString());
      failure.Update(put);
    }
    return ends;
  });
  return failure;
}

void StoreOutputs::SayFailure(const absl::Status& failure) {
  const absl::Duration now = parts_.steady();
  if (now - failure_said_ <= kBetweenWords) return;
  Say(absl::StrCat(base::BoundedUtf8(failure.message(), kLongestOutputLine),
                   "; it is tried again until it is there, for ",
                   absl::FormatDuration(times_.patience.limit), " at most"));
  failure_said_ = now;
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

#include "platform/engine/slurm/slurm_allocation.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/engine/node_files.h"
#include "platform/engine/plan_files.h"
#include "platform/engine/slurm/batch_job.h"
#include "platform/engine/slurm/slurm_messages.h"
#include "spec/json/json_fields.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

// The file that a running collector locks (platform/launch/delivery/collector.h). It exists exactly
// for allocations with `by_folder`.
constexpr char kCollectorLock[] = "collector";

// A launcher may work on for a while though Slurm tells that its job is over, or has forgotten it:
// until slurmd is told, or comes back. No other can deliver what it has. NFS frees the locks of a
// node that has gone after 90 s.
constexpr absl::Duration kLongestAtWork = absl::Minutes(2);

constexpr char kFirstStart[] = "slurm-start";
constexpr char kWish[] = "wish";
constexpr char kRetracted[] = "retracted";
constexpr char kForItsData[] = "; for some seconds only for those that have its data";
constexpr std::streamoff kMostOfLog = 64 << 10;
constexpr absl::Duration kClocksDiffer = absl::Minutes(1);  // at most: a file server's and Slurm's

// Like IsThere, for files by which the engine decides what has run: an error where the file system
// does not say.
absl::StatusOr<bool> Exists(const fs::path& path) {
  std::error_code error;
  const bool exists = fs::exists(path, error);
  if (error) return base::ErrnoStatus(path.native(), error.value());
  return exists;
}

// Whether the node's launcher has begun to collect results: from then on it does not notice that it
// is told to end.
bool HasItsRanksBehindIt(const fs::path& node) {
  const auto events = base::ReadFile(node / "spool/events.jsonl", 64 << 20);
  return events.ok() && absl::StrContains(*events, R"("kind":"finalizing")");
}

// The file's content; nullopt if it does not exist, an error if that or the content cannot be read.
absl::StatusOr<std::optional<std::string>> TextOf(const fs::path& file) {
  auto text = base::ReadFile(file, 1 << 20);
  if (text.ok()) return *std::move(text);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  return text.status();
}

// How long ago the file was written; InfiniteDuration if that is not known.
absl::Duration AgeOf(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  if (error) return absl::InfiniteDuration();
  const auto age = absl::FromChrono(fs::file_time_type::clock::now() - written);
  return std::max(age, absl::ZeroDuration());  // a file server has a clock of its own
}

}  // namespace

void LogError(const absl::Status& status) {
  if (!status.ok()) spdlog::error("{}", status.ToString());
}

absl::Status WriteSlurmId(const fs::path& folder, int64_t id, bool durable) {
  const auto write = durable ? base::WriteFileAtomic : base::ReplaceFile;
  return write(folder / "slurm-id", absl::StrCat(id), 0644);
}

absl::Status SyncAllocation(const fs::path& folder) {
  const auto sync = [](const fs::path& file) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file, O_RDONLY));
    if (::fsync(fd.get()) != 0) return base::ErrnoStatus(absl::StrCat("fsync ", file.native()));
    return absl::OkStatus();
  };
  if (IsThere(folder / "plan.json")) TUTTI_RETURN_IF_ERROR(sync(folder / "plan.json"));
  for (int i = 0; IsThere(folder / absl::StrCat(i) / "plan.json"); ++i) {
    TUTTI_RETURN_IF_ERROR(sync(folder / absl::StrCat(i) / "plan.json"));
    TUTTI_RETURN_IF_ERROR(base::SyncDirectory(folder / absl::StrCat(i)));
  }
  TUTTI_RETURN_IF_ERROR(sync(folder / "batch.sh"));
  TUTTI_RETURN_IF_ERROR(base::SyncDirectory(folder));
  return base::SyncDirectory(folder.parent_path());
}

fs::path SlurmAllocation::node(int index) const { return folder / absl::StrCat(index); }

absl::Status SlurmAllocation::WritePlans(const Allocation& allocation) const {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(WriteSharedPlan(allocation, shared_plan()));
  for (size_t i = 0; i < allocation.nodes.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(node(static_cast<int>(i))));
    TUTTI_RETURN_IF_ERROR(WritePlan(allocation, static_cast<int>(i)));
  }
  return absl::OkStatus();
}

absl::Status SlurmAllocation::WritePlan(const Allocation& allocation, int index) const {
  const std::string text = PlanText(allocation, allocation.nodes.at(index), shared_plan());
  return base::ReplaceFile(node(index) / "plan.json", text, 0600);
}

bool SlurmAllocation::HasBegun(int index) const { return IsThereByNow(node(index) / "started"); }

bool SlurmAllocation::HasBegun() const {
  for (int i = 0; i < node_count(); ++i) {
    if (HasBegun(i)) return true;
  }
  return false;
}

bool SlurmAllocation::HasBegunEverywhere() const {
  for (int i = 0; i < node_count(); ++i) {
    if (!HasBegun(i)) return false;
  }
  return true;
}

// A cheaper HasBegun, for polls over thousands of waiting allocations: it opens no folder, and so
// learns of a begin later where the folder is on NFS.
bool SlurmAllocation::SeemsToHaveBegun() const {
  for (int i = 0; i < node_count(); ++i) {
    if (IsThere(node(i) / "started")) return true;
  }
  return false;
}

bool SlurmAllocation::HasBegunItsLastRun() const {
  if (ran_before) return false;
  const bool is_known = first_start != absl::InfinitePast();
  if (is_known && job.start > first_start) return false;
  // Where no poll showed its start, Slurm's clock is compared with the file server's.
  const absl::Duration start = base::SteadyNow() - (absl::Now() - job.start) - kClocksDiffer;
  for (int i = 0; i < node_count(); ++i) {
    const absl::Duration began = base::SteadyNow() - AgeOf(node(i) / "started");
    if (HasBegun(i) && (is_known || began >= start)) return true;
  }
  return false;
}

bool SlurmAllocation::IsDone(int index) const { return IsThereByNow(node(index) / "done"); }

bool SlurmAllocation::HasDiedUnrequested() const {
  bool has_begun = false;
  for (int i = 0; i < node_count(); ++i) {
    if (!HasBegun(i)) continue;
    has_begun = true;
    if (IsDone(i) || IsThere(node(i) / "told") || HasItsRanksBehindIt(node(i))) return false;
  }
  return has_begun;
}

absl::StatusOr<SlurmAllocation> SlurmAllocation::Find(const fs::path& folder) {
  SlurmAllocation found;
  found.folder = folder;
  TUTTI_ASSIGN_OR_RETURN(const bool is_allocation, Exists(folder / "batch.sh"));
  if (!is_allocation) return absl::NotFoundError(folder.native());
  for (int count = 0;; found.couriers.resize(++count)) {
    TUTTI_ASSIGN_OR_RETURN(const bool has_node, Exists(found.node(count) / "plan.json"));
    if (!has_node) break;
  }
  TUTTI_ASSIGN_OR_RETURN(found.stopped_before, Exists(found.node(0) / "stop"));
  TUTTI_ASSIGN_OR_RETURN(found.by_folder, Exists(folder / kCollectorLock));
  TUTTI_ASSIGN_OR_RETURN(const auto id, TextOf(folder / "slurm-id"));
  TUTTI_ASSIGN_OR_RETURN(const auto end, TextOf(folder / "end"));
  TUTTI_ASSIGN_OR_RETURN(const auto start, TextOf(folder / kFirstStart));
  TUTTI_ASSIGN_OR_RETURN(found.lifts_to, TextOf(folder / kWish));
  TUTTI_ASSIGN_OR_RETURN(const auto retracted, TextOf(folder / kRetracted));
  found.stage = Stage::kUncertain;
  found.since = found.seen = base::SteadyNow();
  if (id && absl::SimpleAtoi(*id, &found.job.id)) {
    found.job.state = "PENDING";
    found.stage = Stage::kSubmitted;
    found.since -= AgeOf(folder / "slurm-id");
  }
  int64_t number = 0;
  if (retracted && absl::SimpleAtoi(*retracted, &number)) found.retracted = number;
  int64_t seconds = 0;
  if (start && absl::SimpleAtoi(*start, &seconds)) {
    found.first_start = absl::FromUnixSeconds(seconds);
  }
  if (end) found.ReadEnd(*end);
  return found;
}

void SlurmAllocation::ReadEnd(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  stage = Stage::kEnded;
  over_since = base::SteadyNow();
  job.phase = SlurmPhase::kEnded;
  if (!json.is_object()) return;
  if (json.contains("how") && json["how"].is_string()) end = json["how"];
  lost = json.contains("lost") && json["lost"] == true;
  disk_full = json.contains("disk_full") && json["disk_full"] == true;
  if (json.contains("nodes") && json["nodes"].is_string()) job.nodes = json["nodes"];
}

absl::Status SlurmAllocation::NoteId(int64_t id, bool durable) {
  if (job.id != 0 && job.id != id) ForgetFirstRun();
  job.id = id;
  TUTTI_RETURN_IF_ERROR(WriteSlurmId(folder, id, durable));
  return retracted != 0 && retracted != id ? ForgetRetraction() : absl::OkStatus();
}

absl::Status SlurmAllocation::NoteWish(std::optional<std::string> excluded_later) {
  lifts_to = std::move(excluded_later);
  return lifts_to ? base::WriteFileAtomic(folder / kWish, *lifts_to, 0644)
                  : base::RemoveTree(folder / kWish);
}

absl::Status SlurmAllocation::NoteRetraction() {
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder / kRetracted, absl::StrCat(job.id), 0644));
  retracted = job.id;
  return absl::OkStatus();
}

absl::Status SlurmAllocation::ForgetRetraction() { return base::RemoveTree(folder / kRetracted); }

absl::Status SlurmAllocation::ForgetWish() {
  TUTTI_RETURN_IF_ERROR(NoteWish(std::nullopt));
  if (retracted == 0 || retracted != job.id) return absl::OkStatus();
  retracted = 0;
  return ForgetRetraction();
}

absl::Status SlurmAllocation::SubmitAnew() {
  stage = Stage::kToSubmit;
  wish = {};
  job = {};
  TUTTI_RETURN_IF_ERROR(NoteWish(std::nullopt));
  return base::RemoveTree(folder / "slurm-id");
}

bool SlurmAllocation::MayBeLost(absl::Duration saving) const {
  return job.phase == SlurmPhase::kWaiting && seen - since < saving && !HasBegun();
}

absl::Status SlurmAllocation::NoteLoss(absl::Duration settling) {
  stage = Stage::kUncertain;
  settles = base::SteadyNow() + settling;
  problem = "waits: Slurm has lost it and gets it anew";
  job = {};
  ForgetFirstRun();
  return base::RemoveTree(folder / "slurm-id");
}

void SlurmAllocation::ForgetFirstRun() {
  was_booting = ran_before = had_begun = false;
  taken_back = absl::InfiniteDuration();
  first_start = absl::InfinitePast();
  LogError(base::RemoveTree(folder / kFirstStart));
}

absl::Status SlurmAllocation::NotePoll(const SlurmJob& seen) {
  if (seen.phase == SlurmPhase::kWaiting) {
    ran_before = ran_before || had_begun;
    had_begun = had_begun || SeemsToHaveBegun();
    const bool has_run = ran_before || first_start != absl::InfinitePast();
    if (has_run) taken_back = std::min(taken_back, base::SteadyNow());
  } else if (seen.phase == SlurmPhase::kRunning && seen.start <= first_start) {
    ran_before = had_begun = false;  // the newer state has come back
    taken_back = absl::InfiniteDuration();
  }
  if (seen.phase != SlurmPhase::kEnded) was_booting = seen.booting;
  std::string before = std::exchange(job, seen).nodes;
  if (!before.empty() && NodeNames().empty()) job.nodes = std::move(before);
  const bool is_first = job.phase == SlurmPhase::kRunning && first_start == absl::InfinitePast() &&
                        job.start != absl::InfinitePast();
  if (!is_first) return absl::OkStatus();
  first_start = job.start;
  return base::ReplaceFile(folder / kFirstStart, absl::StrCat(absl::ToUnixSeconds(first_start)));
}

std::string SlurmAllocation::LastOutput() const {
  std::ifstream log(folder / kBatchLog, std::ios::binary | std::ios::ate);
  if (!log) return "";
  std::string text(std::clamp<std::streamoff>(log.tellg(), 0, kMostOfLog), ' ');
  log.seekg(-static_cast<std::streamoff>(text.size()), std::ios::end);
  log.read(text.data(), text.size());
  text.resize(log.gcount());
  return text;
}

std::string SlurmAllocation::WhatALauncherNoted() const {
  for (int i = 0; i < node_count(); ++i) {
    if (HasBegun(i)) continue;
    const auto text = base::ReadFile(node(i) / "died", 1 << 16);
    const auto note = nlohmann::json::parse(text.value_or(""), nullptr, false);
    const auto reason = note.is_object() ? note.find("reason") : note.end();
    if (reason != note.end() && reason->is_string()) {
      return absl::StrCat("its launcher could not begin: ", reason->get<std::string>());
    }
  }
  return "";
}

absl::Status SlurmAllocation::NoteEnd(const std::string& how, bool is_lost) {
  stage = Stage::kEnded;
  over_since = base::SteadyNow();
  end = how;
  lost = is_lost;
  nlohmann::json said = {{"how", how}, {"nodes", job.nodes}, {"lost", lost}};
  if (disk_full) said["disk_full"] = true;
  return base::WriteFileAtomic(folder / "end", spec::Dump(said));
}

absl::Status SlurmAllocation::NoteFullDisk(const std::string& how) {
  disk_full = true;
  return NoteEnd(how, /*is_lost=*/true);
}

absl::Status SlurmAllocation::PrepareCollection() const {
  // What is looked at again and again is there from the beginning: a network disk remembers for a
  // while that a file was not.
  for (int i = 0; i < node_count(); ++i) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(node(i) / "spool"));
    for (const char* file : {"written.json", "acknowledged.json"}) {
      TUTTI_RETURN_IF_ERROR(base::ReplaceFile(node(i) / "spool" / file, "{}\n"));
    }
  }
  return base::Open(folder / kCollectorLock, O_WRONLY | O_CREAT).status();
}

bool SlurmAllocation::NeedsCollector() {
  const bool runs = stage == Stage::kSubmitted && job.phase == SlurmPhase::kRunning;
  if (!by_folder || !runs) return false;
  if (collector && collector->Wait(base::Deadline::After(absl::ZeroDuration())).ok()) {
    collector.reset();
  }
  if (collector || base::SteadyNow() < next_collector) return false;
  for (int i = 0; i < node_count(); ++i) {
    if (!IsDone(i)) return true;
  }
  return false;
}

void SlurmAllocation::EndCollector() {
  if (!collector) return;
  collector->SignalGroup(SIGKILL).IgnoreError();
  collector->Wait(base::Deadline::After(absl::Seconds(5))).IgnoreError();
  collector.reset();
}

absl::Status SlurmAllocation::MarkStopped() {
  absl::Status marked;
  for (int i = 0; i < node_count(); ++i) {
    marked.Update(base::Open(node(i) / "stop", O_WRONLY | O_CREAT).status());
  }
  stop_is_marked = marked.ok();
  return marked;
}

std::vector<std::string> SlurmAllocation::NodeNames() const {
  auto names = ExpandHosts(job.nodes);  // a script's launcher is on the first of them
  if (!names.ok() || static_cast<int>(names->size()) < node_count()) return {};
  return *std::move(names);
}

bool SlurmAllocation::WaitsForItsWish() const {
  const bool for_room =
      job.state == "PENDING" && (job.reason.empty() || job.reason == "None" ||
                                 job.reason == "Resources" || job.reason == "Priority");
  return lifts_to && for_room && refused_lifts == 0 && retracted == 0;
}

AllocationState SlurmAllocation::State(const std::string& id,
                                       const std::optional<LaunchersAtWork::Found>& left) {
  AllocationState state{.id = id};
  const bool is_on_nodes = stage == Stage::kSubmitted && job.phase == SlurmPhase::kRunning;
  std::vector<std::string> names;  // thousands may wait, of which there are none to read
  if (is_on_nodes || stage == Stage::kEnded) names = NodeNames();
  const bool runs = is_on_nodes && !names.empty();
  if (!runs && stage != Stage::kEnded) {
    state.waits = true;
    state.reason = !problem.empty() ? problem
                   : stage == Stage::kSubmitted
                       ? absl::StrCat(WhyItWaits(job), WaitsForItsWish() ? kForItsData : "")
                       : "is being handed to Slurm";
    state.expected_start = job.expected_start;
    return state;
  }
  state.suspended = runs && (job.state == "SUSPENDED" || job.state == "STOPPED");
  state.reason = end;
  state.lost = lost;
  state.disk_full = disk_full;
  const bool is_fresh = base::SteadyNow() - over_since < kLongestAtWork;
  // As long as its folder has not answered nothing says that it is to be given up.
  const auto works_on = [&](int node) {
    return left ? is_fresh && left->at_work[node] : is_fresh || names.empty();
  };
  for (int i = 0; i < node_count(); ++i) {
    auto& courier = couriers[i];
    if (courier && courier->Wait(base::Deadline::After(absl::ZeroDuration())).ok()) courier.reset();
    state.launcher_alive.push_back(runs || courier.has_value() || works_on(i));
  }
  // What was begun is delivered, also when Slurm forgot the job before it had told all its nodes.
  if (names.empty() && !(left && left->any_began)) return state;
  for (int i = static_cast<int>(names.size()); i < node_count(); ++i) {
    names.push_back(absl::StrCat("node-", i));
  }
  for (int i = 0; i < node_count(); ++i) {
    // Its launchers know the addresses.
    state.nodes.push_back({.name = names[i], .address = names[i], .directory = node(i)});
  }
  return state;
}

}  // namespace tutti::engine

// A poll of Slurm's queue, and what the engine learns from it of its allocations.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/engine/slurm/slurm_messages.h"
#include "platform/engine/slurm/unshared_job.h"
#include "spec/types/launcher_exit.h"

namespace tutti::engine {
namespace {

using Stage = SlurmAllocation::Stage;

constexpr absl::Duration kQueueLimit = absl::Seconds(30);
constexpr absl::Duration kAccountingLimit = absl::Seconds(10);
// From 24.05.1 on squeue's filters hold for --json too, and leave out what has ended unless told.
// Where SLURM_CLUSTERS names a cluster a header with its name would come before the JSON.
const std::vector<std::string> kListQueue = {"squeue",       "--all",      "--me",
                                             "--states=all", "--noheader", "--json"};

// Slurm keeps a record of a job for a while that it has refused to take, or that was retracted.
bool IsOfARefusal(const SlurmAllocation& known, const SlurmJob& job) {
  return job.phase == SlurmPhase::kEnded && job.id != known.job.id &&
         (known.was_refused || job.id == known.retracted);
}

// Orders several Slurm jobs of one allocation; the first is the one that counts. A running job
// comes first, then a waiting one, then the one that the allocation is known to have (another one
// that has ended was refused, or cancelled as one too many), then the oldest, and last the one that
// was retracted. `known` may be null.
bool CountsMore(const SlurmJob& a, const SlurmJob& b, const SlurmAllocation* known) {
  const auto rank = [known](const SlurmJob& job) {
    if (job.phase == SlurmPhase::kRunning) return 0;
    if (job.phase == SlurmPhase::kWaiting) return 1;
    if (known != nullptr && job.id == known->job.id) return 2;
    return known != nullptr && job.id == known->retracted ? 4 : 3;
  };
  return std::pair(rank(a), a.id) < std::pair(rank(b), b.id);
}

}  // namespace

void SlurmEngine::Poll() {
  const absl::Duration began = base::SteadyNow();
  {
    absl::MutexLock lock(&mutex_);
    hurry_ = false;
  }
  const auto queue = commands_->Run(kListQueue, base::Deadline::After(kQueueLimit), stopping_);
  if (absl::IsCancelled(queue.status())) return;
  absl::StatusOr<std::vector<SlurmJob>> jobs;
  if (!queue.ok()) {
    jobs = queue.status();
  } else if (queue->exit.ok()) {
    jobs = ReadQueue(queue->out, comment_);
  } else {
    jobs = absl::UnavailableError(ErrorIn(queue->err));
  }
  std::vector<Forgotten> forgotten;
  {
    absl::MutexLock lock(&mutex_);
    forgotten = NotePoll(jobs, began);
  }
  const size_t most = options_.most_numbers;
  for (size_t i = 0; i < forgotten.size(); i += most) {
    EndForgotten(std::span(forgotten).subspan(i, std::min(most, forgotten.size() - i)));
  }
}

std::vector<SlurmEngine::Forgotten> SlurmEngine::NotePoll(
    const absl::StatusOr<std::vector<SlurmJob>>& jobs, absl::Duration began) {
  last_poll_ = base::SteadyNow();
  poll_cost_ = last_poll_ - began;
  const absl::Status before = slurm_;
  slurm_ = absl::OkStatus();
  if (!jobs.ok()) {
    slurm_ = absl::UnavailableError(
        absl::StrCat("waits for Slurm, which does not answer: ", jobs.status().message()));
    if (before != slurm_) spdlog::warn("{}", std::string(slurm_.message()));
    return {};
  }
  polled_ = true;
  poll_is_due_ = false;
  if (began >= late_poll_) late_poll_ = absl::InfiniteDuration();
  const JobOfEach job_of = ChooseJobs(*jobs);
  std::vector<Forgotten> forgotten = NoteJobs(job_of, began);
  WatchEnded();
  return forgotten;
}

SlurmEngine::JobOfEach SlurmEngine::ChooseJobs(const std::vector<SlurmJob>& jobs) {
  JobOfEach counting;
  surplus_.clear();
  for (const SlurmJob& job : jobs) {
    const absl::string_view id = absl::StripPrefix(job.comment, comment_);
    const SlurmJob*& best = counting[id];
    const SlurmJob* surplus = best;
    const auto known = known_.find(std::string(id));
    if (best == nullptr ||
        CountsMore(job, *best, known == known_.end() ? nullptr : &known->second)) {
      best = &job;
    } else {
      surplus = &job;
    }
    if (surplus != nullptr && surplus->phase != SlurmPhase::kEnded)
      surplus_.push_back({surplus->id, surplus->name, surplus->comment, ""});
  }
  // Nobody hears of what a job does whose allocation is over.
  for (const auto& [id, job] : counting) {
    const auto known = known_.find(std::string(id));
    const bool is_over = known == known_.end() || known->second.stage == Stage::kEnded;
    if (is_over && job->phase != SlurmPhase::kEnded)
      surplus_.push_back({job->id, job->name, job->comment, ""});
  }
  return counting;
}

std::vector<SlurmEngine::Forgotten> SlurmEngine::NoteJobs(const JobOfEach& job_of,
                                                          absl::Duration began) {
  std::vector<Forgotten> forgotten;
  for (auto& [id, known] : known_) {
    if (known.stage == Stage::kEnded) continue;
    const auto found = job_of.find(id);
    known.shown = found != job_of.end() && !IsOfARefusal(known, *found->second);
    if (known.shown) {
      NoteShown(known, *found->second, began);
    } else if (known.stage == Stage::kSubmitted && known.since < began) {
      forgotten.push_back({id, known.job.id});
    } else if (known.stage == Stage::kUncertain && known.settles < began) {
      if (known.HasBegun()) {
        LogError(known.NoteEnd("Slurm no longer knows its job", /*lost=*/true));
      } else {
        known.stage = Stage::kToSubmit;
      }
    }
  }
  return forgotten;
}

void SlurmEngine::NoteShown(SlurmAllocation& known, const SlurmJob& job, absl::Duration began) {
  if (known.stage != Stage::kSubmitted || known.job.id != job.id) {
    LogError(known.NoteId(job.id, !shared()));
  }
  if (known.stage != Stage::kSubmitted) known.since = began;
  known.stage = Stage::kSubmitted;
  known.seen = began;
  known.problem.clear();
  LogError(known.NotePoll(job));
  if (job.phase == SlurmPhase::kEnded) NoteEnd(known, job);
  const bool waits_again =
      job.phase == SlurmPhase::kWaiting && began - known.taken_back >= options_.taking_back;
  if (waits_again) NoteTakenBack(known);
}

void SlurmEngine::EndForgotten(std::span<const Forgotten> forgotten) {
  const std::string numbers = absl::StrJoin(
      forgotten, ",",
      [](std::string* out, const Forgotten& one) { absl::StrAppend(out, one.number); });
  const auto answer = commands_->Run({"sacct", "--jobs=" + numbers, "--allocations", "--noheader",
                                      "--parsable2", absl::StrCat("--format=", kRecordFormat)},
                                     base::Deadline::After(kAccountingLimit), stopping_);
  if (absl::IsCancelled(answer.status())) return;
  const bool answered = answer.ok() && answer->exit.ok();
  const std::vector<SlurmRecord> records =
      answered ? ReadRecords(answer->out) : std::vector<SlurmRecord>();
  absl::MutexLock lock(&mutex_);
  for (const Forgotten& one : forgotten) {
    const auto at = known_.find(one.allocation);
    if (at == known_.end() || at->second.stage == Stage::kEnded) continue;  // meanwhile
    SlurmAllocation& known = at->second;
    const auto found = std::find_if(records.begin(), records.end(), [&](const SlurmRecord& record) {
      // Slurm may count from the beginning again.
      return record.job.id == one.number &&
             absl::StartsWith(one.allocation, absl::StrCat(record.name, "."));
    });
    if (found != records.end() && found->job.phase == SlurmPhase::kEnded) {
      NoteEnd(known, found->job);
    } else if (shared() && known.MayBeLost(options_.saving)) {
      spdlog::warn("Slurm no longer knows its job {}, which had just come: {} is submitted again",
                   one.number, one.allocation);
      LogError(known.NoteLoss(options_.settling));
    } else {
      const std::string how = absl::StrCat("Slurm no longer knows its job ", one.number);
      RequestPolls();
      LogError(known.NoteEnd(how, /*lost=*/true));
    }
  }
}

void SlurmEngine::RequestPolls() {
  poll_is_due_ = true;
  late_poll_ = base::SteadyNow() + options_.forgetting;
}

void SlurmEngine::NoteTakenBack(SlurmAllocation& known) {
  RequestPolls();  // that find a job which nobody waits for, and cancel it
  LogError(known.NoteEnd("Slurm took it back to its queue after it had started it", /*lost=*/true));
}

// The end of a launcher that could not take its plan has the job stopped on the other nodes, so
// that it may be we who cancelled it.
static bool NoteWhatALauncherNoted(SlurmAllocation& known) {
  const std::string noted = known.WhatALauncherNoted();
  if (noted.empty()) return false;
  LogError(base::SpeaksOfAFullDisk(noted) ? known.NoteFullDisk(noted)
                                          : known.NoteEnd(noted, /*is_lost=*/known.HasBegun()));
  return true;
}

bool SlurmEngine::WasCancelledForAnother(const SlurmJob& job) const {
  const auto found = cancelled_.find(job.id);
  return found != cancelled_.end() && found->second.comment != job.comment;
}

void SlurmEngine::NoteCancelledForAnother(SlurmAllocation& known, const SlurmJob& job) {
  const std::string why = absl::StrCat("Slurm's controller has given number ", job.id,
                                       " anew while the job that had it was cancelled");
  if (!known.job.nodes.empty() || known.HasBegun()) {
    LogError(known.NoteEnd(why, /*lost=*/true));
    return;
  }
  spdlog::warn("allocation {} is submitted again: {}", known.folder.filename().native(), why);
  // Without the record its end would be the end of the allocation for an engine that comes now.
  const absl::Status noted = known.NoteRetraction();
  LogError(noted);
  if (noted.ok()) LogError(known.SubmitAnew());
}

void SlurmEngine::NoteEnd(SlurmAllocation& known, const SlurmJob& job) {
  RequestPolls();
  const bool cancelled = job.state == "CANCELLED";
  const bool retracted = known.retracted != 0 && known.retracted == job.id;
  if (retracted && cancelled && !known.stop && known.job.nodes.empty()) {
    LogError(known.SubmitAnew());
    return;
  }
  if (cancelled && !known.stop && WasCancelledForAnother(job)) {
    return NoteCancelledForAnother(known, job);
  }
  // That it was cancelled by us says nothing of why.
  const bool by_us = cancelled && (known.killed || known.stopped_before);
  if (by_us && known.taken_back != absl::InfiniteDuration()) return NoteTakenBack(known);
  // A slurmd that cannot launch it cancels it, since Slurm may not requeue it. While nodes boot,
  // which may take minutes, it rather was somebody.
  const bool unlaunched = shared() && cancelled && !by_us && !known.job.nodes.empty() &&
                          !known.was_booting && !known.HasBegunItsLastRun();
  // Whom somebody cancels Slurm tells to end first; slurmds that kill what they take for surplus
  // may not, as of a job that a slurmctld with an older state starts a second time.
  const bool unrequested =
      shared() && cancelled && !by_us && !known.stop && known.HasDiedUnrequested();
  std::string how = unlaunched    ? "it was cancelled in Slurm before it had begun on its nodes"
                    : unrequested ? "it was cancelled in Slurm after its launchers had died"
                                  : HowItEnded(job);
  // A note may not fit on the disk any more, but this is said.
  const bool is_full = job.exit_code == spec::kLauncherFoundDiskFull;
  if (how.empty() && is_full && shared() && !known.stop && !known.HasBegunEverywhere()) {
    LogError(known.NoteFullDisk(absl::StrCat("its launcher could not begin: the disk of ",
                                             options_.compute.folder,
                                             ", which all nodes share, was full")));
    return;
  }
  bool lost = HasLostANode(job) || unlaunched || unrequested;
  if (how.empty() && shared() && !known.stop && !known.HasBegunEverywhere()) {
    how = WhyItCouldNotBegin(known.LastOutput(), options_.launcher.front());
    lost = !how.empty() && known.HasBegun();  // on another node: then this one is at fault
  }
  if (how.empty() && !shared() && !known.stop) {
    const NodesGaveUp gave_up = WhyNodesGaveUp(job.exit_code);
    how = gave_up.why;
    lost = gave_up.may_pass;
  }
  const bool noted = shared() && (how.empty() || by_us) && NoteWhatALauncherNoted(known);
  if (!noted) LogError(known.NoteEnd(by_us ? "" : how, lost));
}

}  // namespace tutti::engine

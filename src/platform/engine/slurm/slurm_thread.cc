// The engine's thread, which alone talks to Slurm: it submits, polls (slurm_poll.cc) and stops.
#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/threads/at_once.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/engine/slurm/slurm_messages.h"
#include "spec/types/service_endpoint.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;
using Stage = SlurmAllocation::Stage;

constexpr absl::Duration kCommandLimit = absl::Seconds(30);
constexpr absl::Duration kRest = absl::Seconds(5);
constexpr absl::Duration kShortest = absl::Milliseconds(50);  // between polls, also in a hurry
constexpr int kShareOfTime = 40;
// Slurm forgets a job five minutes after its end, unless its site says otherwise.
constexpr absl::Duration kLongestRest = absl::Minutes(2);
// An sbatch mostly waits for the controller, which serves several at once.
constexpr size_t kAtOnce = 4;
// Then there is something else to do as well.
constexpr absl::Duration kLongestRound = absl::Seconds(5);

// Returns the number in sbatch's output "17" or "17;cluster"; 0 for anything else.
int64_t NumberIn(absl::string_view out) {
  const std::vector<absl::string_view> words = absl::StrSplit(out, absl::ByAnyChar(";\n"));
  int64_t number = 0;
  return absl::SimpleAtoi(words.front(), &number) ? number : 0;
}

const std::vector<std::string> kByForce = {"scancel"};
constexpr size_t kFewCancels = 4;
// Polls show a cancelled job at once, but for a controller that is away.
constexpr absl::Duration kShownLate = absl::Minutes(10);

}  // namespace

void SlurmEngine::RunThread() {
  while (true) {
    SubmitAll();
    bool poll = false;
    {
      absl::MutexLock lock(&mutex_);
      poll = PollIsDue();
    }
    if (poll) Poll();
    StartCollectors();
    LiftWishes();
    StopAll();
    absl::MutexLock lock(&mutex_);
    WatchEnded();
    if (stopping_) return;
    if (!called_) {
      const absl::Duration rest = std::clamp(late_poll_ - base::SteadyNow(), kShortest, kRest);
      wake_.WaitWithTimeout(&mutex_, HasWork() ? std::min(PollInterval(), kRest) : rest);
    }
    called_ = false;
  }
}

void SlurmEngine::Call() {
  called_ = true;
  wake_.Signal();
}

bool SlurmEngine::HasWork() const {
  return poll_is_due_ || !surplus_.empty() || base::SteadyNow() >= late_poll_ ||
         std::any_of(known_.begin(), known_.end(),
                     [](const auto& entry) { return entry.second.stage != Stage::kEnded; });
}

void SlurmEngine::WatchEnded() {
  for (const auto& [id, known] : known_) {
    if (known.stage == Stage::kEnded) at_work_.Watch(id, known.folder, known.node_count());
  }
}

bool SlurmEngine::PollIsDue() const {
  return HasWork() && base::SteadyNow() - last_poll_ >= PollInterval();
}

absl::Duration SlurmEngine::PollInterval() const {
  if (hurry_) return std::max(kShortest, poll_cost_);
  return std::max(options_.poll_interval, std::min(poll_cost_ * (kShareOfTime - 1), kLongestRest));
}

std::string SlurmEngine::TellWhereTheServiceIs() {
  if (options_.launcher_file.empty()) return "";
  const auto service = spec::ReadEndpoint(options_.launcher_file);
  if (!service.ok()) return std::string(service.status().message());
  if (spec::IsOfThisMachineOnly(service->address)) {
    return absl::StrCat("waits: the service listens at ", service->address,
                        ", which the nodes cannot reach; start it with --bind and an address that "
                        "they can");
  }
  const bool wanted = shared() && options_.compute.reach != spec::Reach::kFolder;
  const std::string text = spec::ToJson(*service);
  if (text == told_ || !wanted) return "";
  const absl::Status told =
      base::ReplaceFile(fs::path(options_.compute.folder) / "launcher.json", text, 0600);
  if (!told.ok()) return std::string(told.message());
  told_ = text;
  return "";
}

void SlurmEngine::SubmitAll() {
  std::string problem;
  {
    absl::MutexLock lock(&mutex_);
    if (known_.empty()) return;
  }
  problem = TellWhereTheServiceIs();
  std::vector<std::pair<absl::Duration, std::string>> due;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = base::SteadyNow();
    for (auto& [id, known] : known_) {
      if (known.stage != Stage::kToSubmit) continue;
      if (known.stop) {
        LogError(known.NoteEnd(""));
        continue;
      }
      if (known.command.empty() || now < std::max(known.not_before, next_submit_)) continue;
      if (!problem.empty() && !known.by_folder) {
        known.problem = problem;
        continue;
      }
      due.emplace_back(known.since, id);
    }
  }
  std::sort(due.begin(), due.end());
  const base::Deadline round = base::Deadline::After(kLongestRound);
  std::atomic<size_t> next = 0;
  const auto submit = [&] {
    for (size_t i = next++; i < due.size(); i = next++) {
      if (round.Expired() || !Submit(due[i].second)) next = due.size();
    }
  };
  const size_t at_once = std::min(due.size(), kAtOnce);
  base::ForEachAtOnce(at_once, at_once, [&](size_t) { submit(); });
  absl::MutexLock lock(&mutex_);
  called_ |= round.Expired();  // there may be more
}

// Before the next poll, which may show a record of what was refused.
bool SlurmEngine::Submit(const std::string& id) {
  bool again = false;
  bool more = SubmitOnce(id, again);
  while (again) {
    again = false;
    more = SubmitOnce(id, again);
  }
  return more;
}

bool SlurmEngine::SubmitOnce(const std::string& id, bool& again) {
  std::vector<std::string> command;
  DataWish wish;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    SlurmAllocation& known = known_.at(id);  // what is to be submitted is not released
    if (known.stop) return true;
    command = known.command;
    if (known.retracted == 0) wish = known.wish;
    // From here on an sbatch may take effect, whatever becomes of this process.
    known.stage = Stage::kUncertain;
    known.settles = absl::InfiniteDuration();
  }
  command = WithWish(id, std::move(command), wish);
  const fs::path folder = fs::path(options_.compute.folder) / id;
  const absl::Status synced = SyncAllocation(folder);
  const auto result = synced.ok()
                          ? commands_->Run(command, base::Deadline::After(kCommandLimit), stopping_)
                          : absl::StatusOr<CommandResult>(synced);
  const int64_t number = result.ok() && result->exit.ok() ? NumberIn(result->out) : 0;
  // On a disk that the nodes share their traces tell what has run.
  if (number > 0) LogError(WriteSlurmId(folder, number, /*durable=*/!shared()));
  absl::MutexLock lock(&mutex_);
  SlurmAllocation& known = known_.at(id);  // nor what is uncertain
  known.since = known.seen = base::SteadyNow();
  known.shown = false;
  if (number > 0) {
    known.stage = Stage::kSubmitted;
    known.problem.clear();
    known.job.id = number;
    known.job.state = "PENDING";
    if (known.retracted != 0) LogError(known.ForgetRetraction());
    if (known.retracted == number) known.retracted = 0;  // Slurm has counted anew
    spdlog::info("allocation {} is Slurm's job {}", id, number);
    return true;
  }
  const std::string why = !result.ok()        ? std::string(result.status().message())
                          : result->exit.ok() ? "sbatch told no number of a job"
                                              : ErrorIn(result->err);
  const bool late =
      result.ok() ? TookTooLong(result->err) : absl::IsDeadlineExceeded(result.status());
  const std::string limit = result.ok() ? SubmitLimit(result->err) : "";
  if (!late && result.ok() && !result->exit.ok() && limit.empty() && !MayPass(result->err)) {
    if (known.lifts_to) {
      LogError(known.NoteWish(std::nullopt));
      known.wish = {};
      known.stage = Stage::kToSubmit;
      again = known.was_refused = true;
      return true;
    }
    if (!known.command_anywhere.empty()) {
      spdlog::warn("allocation {} gets nodes that failed before: Slurm says {}", id, why);
      known.command = std::exchange(known.command_anywhere, {});
      known.stage = Stage::kToSubmit;
      again = known.was_refused = true;
      return true;
    }
    LogError(known.NoteEnd(absl::StrCat("Slurm refused it: ", why)));
    return true;
  }
  known.problem = limit.empty()
                      ? absl::StrCat("waits for Slurm: ", why)
                      : absl::StrCat("waits: as many jobs as may be are in Slurm (", limit, ")");
  known.settles = known.since + (late ? options_.slow_settling : options_.settling);
  next_submit_ = known.since + options_.pause;
  known.not_before = limit.empty() ? next_submit_ : known.since + options_.limit_pause;
  return false;
}

// With the thread that starts it a collector ends: who comes next starts another.
void SlurmEngine::StartCollectors() {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, known] : known_) {
    if (!known.NeedsCollector()) continue;
    known.next_collector = base::SteadyNow() + options_.pause;
    base::ChildOptions options;
    options.arguments = options_.collector;
    options.arguments.push_back(known.folder.native());
    options.arguments.push_back(options_.launcher_file.native());
    options.environment = base::CurrentEnvironment();
    options.directory = "/";
    options.new_session = options.die_with_parent = true;
    const auto log =
        base::Open(known.folder / "collector.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
    if (log.ok()) options.stdout_fd = options.stderr_fd = log->get();
    auto collector = base::ChildProcess::Start(options);
    LogError(collector.status());
    if (collector.ok()) known.collector = *std::move(collector);
  }
}

void SlurmEngine::StopAll() {
  std::map<std::vector<std::string>, std::vector<Cancelled>> cancels;  // by their command
  {
    absl::MutexLock lock(&mutex_);
    // A number alone may be another job's since: a controller that was killed counts anew.
    if (!slurm_.ok()) return;
    const absl::Duration now = base::SteadyNow();
    if (now >= next_surplus_ && !surplus_.empty()) {
      for (const Cancelled& one : surplus_) cancels[kByForce].push_back(one);
      next_surplus_ = now + options_.pause;
    }
    for (auto& [id, known] : known_) {
      if (!known.stop || known.stage != Stage::kSubmitted) continue;
      if (!known.stop_is_marked) known.MarkStopped().IgnoreError();  // it may be possible by now
      if (!known.shown) {
        hurry_ = true;
        continue;
      }
      const bool by_force = known.job.phase != SlurmPhase::kRunning || now > known.kill_at;
      if ((known.signalled && !by_force) || now < known.next_cancel) continue;  // Slurm is at it
      known.next_cancel = now + options_.pause;
      if (!by_force) known.next_cancel = std::min(known.next_cancel, known.kill_at);
      cancels[CancelCommand(known, by_force)].push_back(
          {known.job.id, known.job.name, known.job.comment, id});
    }
    if (!cancels.empty()) hurry_ = true;
  }
  for (const auto& [command, jobs] : cancels) {
    const size_t most = jobs.size() > kFewCancels ? options_.most_numbers : 1;
    for (size_t i = 0; i < jobs.size(); i += most) {
      if (!Cancel(command, std::span(jobs).subspan(i, std::min(most, jobs.size() - i)))) return;
    }
  }
}

bool SlurmEngine::Cancel(std::vector<std::string> command, std::span<const Cancelled> jobs) {
  const bool by_force = command == kByForce;
  if (jobs.size() == 1 && !jobs.front().name.empty()) {
    command.push_back(absl::StrCat("--name=", jobs.front().name));
  }
  for (const Cancelled& job : jobs) command.push_back(absl::StrCat(job.number));
  const auto result = commands_->Run(command, base::Deadline::After(kCommandLimit), stopping_);
  if (absl::IsCancelled(result.status())) return false;
  const bool done = result.ok() && result->exit.ok();
  const std::string why = done          ? ""
                          : result.ok() ? ErrorIn(result->err)
                                        : std::string(result.status().message());
  if (!done) spdlog::warn("scancel: {}", why);
  absl::MutexLock lock(&mutex_);
  const absl::Duration now = base::SteadyNow();
  std::erase_if(cancelled_, [&](const auto& one) { return now - one.second.at > kShownLate; });
  for (const Cancelled& job : jobs) {
    cancelled_[job.number] = {job.comment, now};
    const auto found = known_.find(job.allocation);
    if (found == known_.end()) continue;
    // One that fails may have ended the job all the same.
    if (by_force) found->second.killed = true;
    if (!by_force) found->second.signalled |= done;
  }
  return result.ok() && (done || !MayPass(result->err));
}

std::vector<std::string> SlurmEngine::CancelCommand(const SlurmAllocation& known,
                                                    bool by_force) const {
  if (by_force) return kByForce;
  // There no launcher sees the file that says by whom it is told: the script says it.
  if (!shared()) return {"scancel", "--batch", "--signal=USR1"};
  if (known.node_count() == 1) return {"scancel", "--batch", "--signal=TERM"};
  return {"scancel", "--signal=TERM"};
}

}  // namespace tutti::engine

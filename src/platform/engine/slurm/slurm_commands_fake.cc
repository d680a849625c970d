#include "platform/engine/slurm/slurm_commands_fake.h"

#include <fcntl.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/engine/slurm/queue_reader.h"

namespace tutti::engine {
namespace {

std::string ValueOf(const std::vector<std::string>& arguments, absl::string_view option) {
  for (const std::string& argument : arguments) {
    absl::string_view value = argument;
    if (absl::ConsumePrefix(&value, absl::StrCat(option, "="))) return std::string(value);
  }
  return "";
}

CommandResult FailsWith(const std::string& text) {
  return {.exit = {.code = 1}, .err = absl::StrCat(text, "\n")};
}

}  // namespace

absl::StatusOr<CommandResult> SlurmCommandsFake::Run(const std::vector<std::string>& arguments,
                                                     base::Deadline, const std::atomic<bool>&) {
  absl::MutexLock lock(&mutex_);
  const std::string& program = arguments.front();
  const Fault fault = faults_[program];
  const absl::Status late = absl::DeadlineExceededError(program + " did not answer in time");
  if (fault == Fault::kNothing) return late;
  if (fault == Fault::kDown && program == "squeue") {  // as 22.05, which ends with 0
    return CommandResult{.out = R"({"errors": [{"description": "Failed while looking for jobs",
        "error_number": -1, "error": "Unspecified error", "source": "slurm_load_jobs"}],
        "jobs": []})"};
  }
  if (fault == Fault::kDown) {
    return FailsWith(program + ": error: Unable to contact slurm controller (connect failure)");
  }
  if (fault == Fault::kRefuse) {
    return FailsWith("sbatch: error: Batch job submission failed: Invalid partition name");
  }
  if (fault == Fault::kFull) {
    return FailsWith(
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: "
        "Job "
        "violates accounting/QOS policy (job submit limit, user's size and/or time limits)");
  }
  if (program != "scancel") ++counts_[program];
  CommandResult result;
  if (program == "sbatch") result = Sbatch(arguments);
  if (program == "squeue") result.out = Squeue();
  if (program == "sinfo") {
    const std::string& format = arguments.back();
    result.out = format == "--format=%G"                            ? gres_
                 : format == absl::StrCat("--format=", kRoomFormat) ? room_
                                                                    : Sinfo();
  }
  if (program == "scancel") result = Scancel(arguments);
  if (program == "sacct") result = Sacct();
  if (fault == Fault::kLate) return late;
  return result;
}

CommandResult SlurmCommandsFake::Sbatch(const std::vector<std::string>& arguments) {
  last_sbatch_ = arguments;
  Job job{.name = ValueOf(arguments, "--job-name"),
          .comment = ValueOf(arguments, "--comment"),
          .state = "PENDING",
          .folder = std::filesystem::path(arguments.back()).parent_path().string()};
  if (!absl::SimpleAtoi(ValueOf(arguments, "--nodes"), &job.nodes)) job.nodes = 1;
  if (!hold_) Begin(job);
  jobs_[next_] = job;
  return {.out = absl::StrCat(next_++, "\n")};
}

// As a launcher that takes its plan does.
void SlurmCommandsFake::Begin(Job& job) {
  job.state = "RUNNING";
  job.is_placed = true;
  job.start = absl::ToUnixSeconds(absl::Now());
  for (int i = 0; i < job.nodes; ++i) {
    const std::filesystem::path node = std::filesystem::path(job.folder) / absl::StrCat(i);
    base::Open(node / "started", O_WRONLY | O_CREAT).status().IgnoreError();
  }
}

// As launchers that Slurm tells to end leave it.
void SlurmCommandsFake::TellLaunchers(const Job& job) {
  for (int i = 0; i < job.nodes; ++i) {
    const std::filesystem::path node = std::filesystem::path(job.folder) / absl::StrCat(i);
    base::Open(node / "told", O_WRONLY | O_CREAT).status().IgnoreError();
  }
}

std::string SlurmCommandsFake::Squeue() const {
  nlohmann::json jobs = nlohmann::json::array();
  for (const auto& [id, job] : jobs_) {
    const bool waits = job.state == "PENDING";
    const std::string all = job.is_placed ? absl::StrCat("n[1-", job.nodes, "]") : "";
    jobs.push_back({{"job_id", id},
                    {"job_state", job.state},
                    {"state_reason", waits ? "Resources" : "None"},
                    {"start_time", job.start},
                    {"name", job.name},
                    {"comment", job.comment},
                    {"exit_code", {{"return_code", {{"set", true}, {"number", job.exit_code}}}}},
                    {"nodes", job.state == "COMPLETING" ? job.completing : all}});
  }
  return nlohmann::json{{"jobs", std::move(jobs)}}.dump();
}

std::string SlurmCommandsFake::Sinfo() {
  return "n1|mixed|4|4096|10.0.0.1|none\nn2|idle|4|4096|n2|none\n";
}

CommandResult SlurmCommandsFake::Sacct() const {
  if (!keeps_accounts_) return FailsWith("Slurm accounting storage is disabled");
  CommandResult result;
  for (const auto& [id, job] : forgotten_) {
    absl::StrAppend(&result.out, id, "|", job.name, "|", job.state, "\n");
  }
  return result;
}

CommandResult SlurmCommandsFake::Scancel(const std::vector<std::string>& arguments) {
  CommandResult result;
  const std::string name = ValueOf(arguments, "--name");
  for (const std::string& argument : arguments) {
    int id = 0;
    if (!absl::SimpleAtoi(argument, &id)) continue;
    if (name.empty() && !gets_number_.empty()) {
      const std::string end = absl::StrCat(":", std::exchange(gets_number_, ""));
      const auto other = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
        return absl::EndsWith(entry.second.comment, end);
      });
      jobs_[id] = other->second;
      jobs_.erase(other);
    }
    if (!name.empty() && (numbers_are_anew_ || jobs_[id].name != name)) continue;  // and no word
    if (!jobs_.contains(id)) {
      result = FailsWith("scancel: error: Invalid job id");
      continue;
    }
    const std::string of_state = ValueOf(arguments, "--state");
    if (!of_state.empty() && jobs_[id].state != of_state) continue;
    const bool is_signal = !ValueOf(arguments, "--signal").empty();
    if (!is_signal || !ignore_signals_) jobs_[id].state = "CANCELLED";
    if (jobs_[id].is_placed) TellLaunchers(jobs_[id]);
    ++counts_["scancel"];
  }
  return result;
}

void SlurmCommandsFake::SetFault(const std::string& program, Fault fault) {
  absl::MutexLock lock(&mutex_);
  faults_[program] = fault;
}

void SlurmCommandsFake::Hold(bool hold) {
  absl::MutexLock lock(&mutex_);
  hold_ = hold;
  if (hold) return;
  for (auto& [id, job] : jobs_) {
    if (job.state == "PENDING") Begin(job);
  }
}

void SlurmCommandsFake::End(const std::string& allocation, const std::string& state,
                            int exit_code) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) {
    if (!absl::EndsWith(job.comment, ":" + allocation)) continue;
    job.state = state;
    job.exit_code = exit_code;
    if (absl::StartsWith(state, "CANCELLED") && job.is_placed) TellLaunchers(job);
  }
}

void SlurmCommandsFake::Complete(const std::string& allocation, const std::string& nodes) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) {
    if (!absl::EndsWith(job.comment, ":" + allocation)) continue;
    if (job.state == "PENDING") Begin(job);
    job.state = "COMPLETING";
    job.completing = nodes;
  }
}

void SlurmCommandsFake::FailLaunch(const std::string& allocation, absl::Duration later) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) {
    if (!absl::EndsWith(job.comment, ":" + allocation)) continue;
    job.state = "CANCELLED";
    job.is_placed = true;
    // What has started already keeps its start, though the clock's second may be another by now.
    if (job.start == 0 || later != absl::ZeroDuration()) {
      job.start = absl::ToUnixSeconds(absl::Now() + later);
    }
  }
}

void SlurmCommandsFake::Double(const std::string& allocation) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) {
    if (!absl::EndsWith(job.comment, ":" + allocation)) continue;
    jobs_[next_++] = job;
    return;
  }
}

void SlurmCommandsFake::Forget() {
  absl::MutexLock lock(&mutex_);
  std::erase_if(jobs_, [this](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool ended = entry.second.state != "PENDING" && entry.second.state != "RUNNING";
    if (ended) forgotten_.insert(entry);
    return ended;
  });
}

int SlurmCommandsFake::Lose(const std::string& allocation) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, job] : jobs_) {
    if (!absl::EndsWith(job.comment, ":" + allocation)) continue;
    job = {.comment = "somebody's", .state = "RUNNING"};
    return id;
  }
  return 0;
}

std::string SlurmCommandsFake::state(int id) const {
  absl::MutexLock lock(&mutex_);
  return jobs_.at(id).state;
}

void SlurmCommandsFake::KeepAccounts() {
  absl::MutexLock lock(&mutex_);
  keeps_accounts_ = true;
}

int SlurmCommandsFake::count(const std::string& program) const {
  absl::MutexLock lock(&mutex_);
  const auto found = counts_.find(program);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<std::string> SlurmCommandsFake::last_sbatch() const {
  absl::MutexLock lock(&mutex_);
  return last_sbatch_;
}

}  // namespace tutti::engine

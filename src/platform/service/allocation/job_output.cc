#include "platform/service/allocation/job_output.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "platform/service/jobs/placed_job.h"
#include "platform/service/models/reported_models.h"
#include "platform/service/results/disk_room.h"

namespace tutti::service {

using Output = PlacedJob::Output;

void JobOutput::LookAfter(LiveJob& job, Effects& effects) {
  if (job.placed->output != Output::kToOpen) return;
  job.placed->output = Output::kOpening;
  effects.tasks.push_back(
      {job.record.job.id, [this, logs = job.placed->logs, usage = job.placed->usage,
                           allocation = job.placed->placement.allocation] {
         const absl::Status opened = logs->TryToOpen();
         NoteOpened(allocation, opened);
         if (opened.ok()) usage->Load();
       }});
}

bool JobOutput::MustAwait(const LiveJob& job) const {
  return job.placed->output == Output::kOpening && job.placed->output_status.ok() &&
         state_.clock->SinceBoot() < job.placed->wait_for_logs_until;
}

void JobOutput::NoteOpened(const std::string& allocation, const absl::Status& status) {
  StateLock lock(state_);
  LiveJob* const job = table_.FindPlaced(allocation);
  if (job == nullptr) return;
  PlacedJob& placed = *job->placed;
  const std::string& id = job->record.job.id;
  if (placed.output == Output::kOpening)
    placed.output = status.ok() ? Output::kOpen : Output::kToOpen;
  placed.output_status = status;
  state_.problems.Note(OutputProblem(state_, id), status, {.job = id});
  NoteWriteOfJobs(state_, status);
  const bool waits = IsFullDisk(status);  // and is tried again
  const bool fails = !status.ok() && placed.must_open && !waits;
  placed.must_open &= waits;
  for (int node = 0; fails && node < placed.gang.size(); ++node) {
    placed.gang.GiveUp(node, absl::StrCat("it could not be started: ", status.message()),
                       state_.clock->Now());
  }
  if (fails || state_.clock->SinceBoot() < placed.wait_for_logs_until) state_.Wake();
}

bool JobOutput::Close(LiveJob& job, bool completes, Effects& effects) {
  PlacedJob& placed = *job.placed;
  if (placed.output == Output::kClosed) return true;
  if (placed.output == Output::kClosing) return false;
  placed.output = Output::kClosing;
  state_.closing_usage[job.record.job.id] = placed.usage;
  effects.tasks.push_back(
      {job.record.job.id, [this, of = job.record.job, completes, logs = placed.logs,
                           usage = placed.usage, allocation = placed.placement.allocation] {
         absl::Status closed = logs->Close();
         while (absl::IsResourceExhausted(closed) && MakeRoom()) closed = logs->Close();
         if (!closed.ok()) return NoteClosed(allocation, closed);
         if (!of.step_key.empty()) StampForReuse(state_, of.id);
         state_.files.RemoveRunning(of.id, allocation, state_.janitor);
         std::vector<std::string> notes;
         if (completes) notes = RegisterReportedModels(state_.files, state_.models, of);
         NoteClosed(allocation, closed, notes);
         CloseUsage(of.id, usage);
       }});
  return false;
}

// The job has ended by then, and no log waits for it.
void JobOutput::CloseUsage(const std::string& id, const std::shared_ptr<JobUsage>& usage) {
  const auto find = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    const auto closing = state_.closing_usage.find(id);
    return closing != state_.closing_usage.end() && closing->second == usage
               ? closing
               : state_.closing_usage.end();
  };
  bool is_there = false;
  {
    StateLock lock(state_);
    is_there = find() != state_.closing_usage.end();  // else it is being deleted
  }
  usage->Close(is_there && DiskOfJobs(state_).Check().ok());
  StateLock lock(state_);
  const auto closing = find();
  if (closing != state_.closing_usage.end()) state_.closing_usage.erase(closing);
}

// A job ends also on a full disk: its lines are there, and the index of the last is small.
bool JobOutput::MakeRoom() {
  base::DiskReserve* const reserve = state_.options.reserve;
  return reserve != nullptr && reserve->GiveUp();
}

void JobOutput::NoteClosed(const std::string& allocation, const absl::Status& status,
                           const std::vector<std::string>& notes) {
  StateLock lock(state_);
  LiveJob* const job = table_.FindPlaced(allocation);
  if (job == nullptr) return;
  const std::string& id = job->record.job.id;
  job->placed->output = status.ok() ? Output::kClosed : Output::kOpen;
  job->placed->output_status = status;
  for (const std::string& note : notes) job->placed->gang.NoteAtEnd(note);
  state_.problems.Note(OutputProblem(state_, id), status, {.job = id});
  if (status.ok()) state_.Wake();  // else the next look tries again
}

}  // namespace tutti::service

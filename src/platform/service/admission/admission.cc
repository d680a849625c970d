#include "platform/service/admission/admission.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/admission/job_name.h"
#include "platform/service/admission/kept_signatures.h"
#include "platform/service/jobs/next_attempt.h"
#include "platform/service/jobs/placed_job.h"
#include "platform/service/results/disk_room.h"
#include "platform/service/retention/in_use.h"
#include "spec/data/signed_address.h"

namespace tutti::service {
namespace {

constexpr int kNameAttempts = 8;
constexpr absl::Duration kPatienceWithOpening = absl::Milliseconds(25);

// Returns the first events of a job with this sequence number. If the job is placed at once,
// `placed` gets the id of its allocation.
std::vector<FirstEvent> FirstEvents(const store::Job& job, int64_t sequence, absl::Time now,
                                    std::optional<Placement>& placed) {
  std::vector<FirstEvent> events;
  events.emplace_back(
      store::Event{.time = job.created, .state = store::JobState::kQueued, .reason = "submitted"},
      EventDetail());
  if (!placed) return events;
  placed->allocation = AllocationOf(store::Job{.id = job.id, .sequence = sequence});
  events.emplace_back(store::Event{.time = std::max(now, job.created),
                                   .state = store::JobState::kProvisioning,
                                   .reason = LocalScheduler::ReasonOfStart(*placed)},
                      EventDetail{.placement = placed});
  return events;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Admission::Check(const Submission& submission) const {
  TUTTI_RETURN_IF_ERROR(state_.disk.Check());
  TUTTI_ASSIGN_OR_RETURN(spec::ReadResult file, check_.Read(submission));
  if (!file.spec.name.empty() && views_.Get(file.spec.name).ok())
    return NameIsTaken(file.spec.name);
  return std::move(file.warnings);
}

absl::StatusOr<JobStatus> Admission::Submit(const Submission& submission) {
  TUTTI_ASSIGN_OR_RETURN(std::optional<JobStatus> known, Known(submission));
  if (known) return *std::move(known);
  auto status = SubmitNew(submission);
  if (!absl::IsAlreadyExists(status.status())) return status;
  // The same submission may have come in at the same time.
  TUTTI_ASSIGN_OR_RETURN(known, Known(submission));
  if (known) return *std::move(known);
  return status;
}

absl::StatusOr<std::optional<JobStatus>> Admission::Known(const Submission& submission) {
  if (submission.nonce.empty()) return std::nullopt;
  auto record = state_.store->JobOfNonce(submission.nonce);
  if (record.ok()) {
    {
      StateLock lock(state_);
      insertions_.Await(record->job.id);  // which takes it back if the disk does not take it
    }
    record = state_.store->JobOfNonce(submission.nonce);
  }
  if (absl::IsNotFound(record.status())) return std::nullopt;
  TUTTI_RETURN_IF_ERROR(record.status());
  spec::Signatures ignored;
  if (record->job.file_text != submission.text &&
      record->job.file_text != spec::FileWithoutSignatures(submission.text, ignored)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the nonce is that of another submission, which became job ", record->job.id));
  }
  // The one who submitted it may still be waiting for that.
  TUTTI_RETURN_IF_ERROR(state_.store->Sync());
  TUTTI_ASSIGN_OR_RETURN(JobStatus status, views_.Get(record->job.id));
  return status;
}

absl::StatusOr<JobStatus> Admission::SubmitNew(const Submission& submission) {
  TUTTI_RETURN_IF_ERROR(state_.disk.Check());
  const absl::Duration looked = state_.clock->SinceBoot();
  TUTTI_ASSIGN_OR_RETURN(store::Job job, check_.ToJob(submission));
  TUTTI_RETURN_IF_ERROR(KeepSignatures(secrets_, job));
  const bool named = !job.spec.name.empty();
  for (int attempt = 0;; ++attempt) {
    job.id = named ? job.spec.name
                   : absl::StrCat(SlugOf(job.spec), "-", state_.options.random_hex(kNameBytes));
    auto status = Insert(job, named, looked);
    if (named || !absl::IsAlreadyExists(status.status()) || attempt == kNameAttempts) {
      return status;
    }
  }
}

absl::StatusOr<JobStatus> Admission::Insert(const store::Job& job, bool named,
                                            absl::Duration looked) {
  TUTTI_ASSIGN_OR_RETURN(std::optional<Placement> placed, BeginInsert(job, looked));
  std::vector<FirstEvent> events;
  const auto events_for = [&](int64_t sequence) {
    events = FirstEvents(job, sequence, state_.clock->Now(), placed);
    return EventsOf(events);
  };
  // What begins here at once is gone with this machine's power: it need not wait for the disk, and
  // only its submitter does.
  const bool begins = placed.has_value();
  const store::Durability durability =
      begins ? store::Durability::kCrash : store::Durability::kPowerLoss;
  // Not under the lock: those who submit at the same time share one sync of the disk.
  auto record = state_.store->InsertJob(job, events_for, durability);
  std::unique_ptr<PlacedJob> known;
  if (begins && record.ok()) known = OpenPlaced(job.id, *std::move(placed));
  JobStatus status;
  {
    StateLock lock(state_);
    EndInsert(job);
    scheduler_.Release(job.id);
    if (named && absl::IsAlreadyExists(record.status())) return NameIsTaken(job.id);
    TUTTI_RETURN_IF_ERROR(record.status());
    status = Adopt(*record, std::move(events), std::move(known));
  }
  if (begins) TUTTI_RETURN_IF_ERROR(StartAndSync(job.id));
  return status;
}

absl::StatusOr<std::optional<Placement>> Admission::BeginInsert(const store::Job& job,
                                                                absl::Duration looked) {
  // One may have been deleted since they were looked at.
  if (const std::string why = WhyWithoutSecrets(*state_.store, job.spec); !why.empty()) {
    return absl::InvalidArgumentError(why);
  }
  const std::set<std::string> inputs = InputsOf(job);
  StateLock lock(state_);
  if (const absl::Status begun = insertions_.Begin(job.id); !begun.ok()) {
    insertions_.Await(job.id);  // what became of it decides the answer to one sent twice
    return begun;
  }
  for (const std::string& input : inputs) {
    const auto gone = state_.leaving_results.find(input);
    // Who has looked later has seen what there is, maybe of another job of that name.
    if (gone == state_.leaving_results.end() || looked > gone->second) continue;
    insertions_.End(job.id);
    return absl::FailedPreconditionError(
        absl::StrCat("the results of job ", input,
                     ", which are an input, have just been removed by the site's retention"));
  }
  state_.inputs_on_their_way.insert(inputs.begin(), inputs.end());
  if (insertions_.size() > 1) return std::nullopt;
  return scheduler_.PlaceAtOnce(job);
}

void Admission::EndInsert(const store::Job& job) {
  insertions_.End(job.id);
  for (const std::string& input : InputsOf(job)) {
    const auto one = state_.inputs_on_their_way.find(input);
    if (one != state_.inputs_on_their_way.end()) state_.inputs_on_their_way.erase(one);
  }
}

std::set<std::string> Admission::InputsOf(const store::Job& job) const {
  return JobsInInputs(job.spec, state_.options.directory / "jobs");
}

std::unique_ptr<PlacedJob> Admission::OpenPlaced(const std::string& id, Placement placement) {
  auto placed = MakePlacedJob(state_, id, std::move(placement));
  placed->must_open = true;
  const auto opened = std::make_shared<absl::Status>();
  const bool in_time = DoWithin(
      state_, state_.folder_work, id, state_.files.FolderOf(id),
      [opened, logs = placed->logs] { *opened = logs->TryToOpen(); },
      base::Deadline::After(kPatienceWithOpening));
  if (!in_time) return placed;  // it is tried again, and nobody waits
  placed->output_status = *opened;
  if (opened->ok()) {
    placed->output = PlacedJob::Output::kOpen;
    placed->usage->Begin();
  }
  return placed;
}

JobStatus Admission::Adopt(const store::JobRecord& record, std::vector<FirstEvent> events,
                           std::unique_ptr<PlacedJob> placed) {
  const std::string& id = record.job.id;
  LiveJob& job = table_.Add(record);
  table_.AnnounceInserted(record, std::move(events));
  if (placed == nullptr) {
    scheduler_.WakeForNewJob(job);
    return views_.StatusOf(job.record);
  }
  const absl::Status opened = placed->output_status;
  NoteWriteOfJobs(state_, opened);
  if (opened.ok() || IsFullDisk(opened)) {  // which is tried again
    table_.Place(job, std::move(placed));
    return views_.StatusOf(job.record);
  }
  // One whose end cannot be written either is begun by the loop, as one that was queued.
  const std::string why = absl::StrCat("it could not be started: ", opened.message());
  const absl::Status ended = table_.Append(job, {store::JobState::kFailed, why});
  state_.problems.Note(StartProblem(id), ended, {.job = id});
  const JobStatus status = views_.StatusOf(job.record);
  if (ended.ok()) table_.Remove(job);
  return status;
}

absl::Status Admission::StartAndSync(const std::string& id) {
  engines_.StartAtOnce(id);
  const absl::Status synced = state_.store->Sync();
  StateLock lock(state_);
  LiveJob* const job = synced.ok() ? nullptr : table_.Find(id);
  if (job != nullptr) {  // its submitter takes it for refused
    const absl::Status canceled = table_.Cancel(*job, kCancelAsked).status();
    if (!canceled.ok()) spdlog::error("job {} cannot be canceled: {}", id, canceled.ToString());
  }
  state_.Wake();
  return synced;
}

}  // namespace tutti::service

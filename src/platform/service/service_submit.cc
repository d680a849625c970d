// How jobs come in: what is checked before, and the one transaction after which they are there.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/admission/disk_space.h"
#include "platform/service/admission/preflight.h"
#include "platform/service/service_core.h"
#include "spec/file/job_file.h"

namespace tutti::service {
namespace {

constexpr int kNameAttempts = 8;
constexpr size_t kJobTokenBytes = 32;
constexpr size_t kLongestId = 200;  // of a child: it becomes a folder
constexpr absl::Duration kPatienceWithClusters = absl::Seconds(3);  // of who submits
constexpr size_t kIdBytes = 3;  // that make a name of the service's its own

// "Hello World" -> "hello-world": what people recognise a job by, safe as a file name.
std::string Slug(absl::string_view text) {
  std::string slug;
  for (const char c : text.substr(0, 40)) {
    if (absl::ascii_isalnum(c)) {
      slug += absl::ascii_tolower(c);
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "job" : slug;
}

// The longest name of a job below it, which follows its own: ".train.trial-10000".
size_t LongestChildName(const spec::JobSpec& job) {
  size_t longest = job.sweep ? std::strlen(".trial-10000") : 0;
  for (const spec::Step& step : job.steps) {
    longest = std::max(longest, 1 + step.name.size() + LongestChildName(step.job));
  }
  return longest;
}

// What job files are called where the folder says what the job is.
bool SaysNothing(absl::string_view stem) {
  return stem.empty() || stem == "job" || stem == "pipeline" || stem == "sweep" || stem == "main" ||
         stem == "run" || stem == "submit" || stem == "azureml" || stem == "azureml-job";
}

// Its title; else its file, since a folder may have many; else its experiment, by default the
// folder.
std::string SlugOf(const spec::JobSpec& job) {
  if (!job.display_name.empty()) return Slug(job.display_name);
  const std::string stem = std::filesystem::path(job.file_name).stem().string();
  return Slug(SaysNothing(stem) ? job.experiment_name : stem);
}

absl::Status CheckNameLength(const spec::JobSpec& job) {
  const size_t own = job.name.empty() ? SlugOf(job).size() + 1 + 2 * kIdBytes : job.name.size();
  if (own + LongestChildName(job) <= kLongestId) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      job.file_name, ": the names of the job and of its steps in each other have more than ",
      kLongestId, " characters"));
}

absl::Status NameIsTaken(absl::string_view name) {
  return absl::AlreadyExistsError(absl::StrCat("there is a job named \"", name,
                                               "\" already: change \"name\", or leave it out"));
}

}  // namespace

// Each job of the tree gets the snapshot of its code.
absl::Status ServiceCore::AssignSnapshots(const std::map<std::string, std::string>& sent,
                                          spec::JobSpec& job, std::string& snapshot) {
  if (const auto found = sent.find(job.AllCode()); snapshot.empty() && found != sent.end()) {
    snapshot = found->second;
  }
  if (!snapshot.empty()) {
    TUTTI_RETURN_IF_ERROR(snapshots_.Find(snapshot).status());
  } else if (!job.AllCode().empty()) {
    return absl::InvalidArgumentError(
        "the job has code, but its snapshot was not sent: PUT /v1/snapshots/… first");
  }
  for (spec::Step& step : job.steps) {
    TUTTI_RETURN_IF_ERROR(AssignSnapshots(sent, step.job, step.snapshot));
  }
  return absl::OkStatus();
}

void ServiceCore::CheckPlaces(const spec::JobSpec& job, base::Faults& faults) const {
  for (const spec::Step& step : job.steps) CheckPlaces(step.job, faults);
  faults.Add(CheckPlace(job));
}

absl::Status ServiceCore::CheckPlace(const spec::JobSpec& job) const {
  if (job.compute.empty()) return absl::OkStatus();  // it was refused
  if (engines_.broken.contains(job.compute)) {
    return absl::InvalidArgumentError(
        absl::StrCat(job.file_name, ": ", WhyOutOfReach(job.compute)));
  }
  if (EngineOf(job.compute) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(job.file_name, ": compute \"", job.compute,
                     "\" is in site.yml, but was not when the service started: restart it"));
  }
  absl::MutexLock lock(&mutex_);
  const int nodes = static_cast<int>(nodes_.size());
  if (job.compute != "local" || job.instance_count <= nodes) return absl::OkStatus();
  const spec::Place& place = job.instance_count_place;  // a script's #SBATCH has none
  return absl::InvalidArgumentError(
      absl::StrCat(place.line > 0 ? absl::StrCat(place.file, ":", place.line) : job.file_name,
                   ": instance_count is ", job.instance_count, ", but the cluster has ", nodes,
                   nodes == 1 ? " node" : " nodes", ": the job could never start"));
}

void ServiceCore::CheckOffers(const spec::JobSpec& job, base::Deadline deadline,
                              std::set<std::string>& faults) const {
  for (const spec::Step& step : job.steps) CheckOffers(step.job, deadline, faults);
  engine::Engine* const engine = EngineOf(job.compute);
  if (job.kind == spec::JobKind::kPipeline || engine == nullptr) return;
  const std::string why = engine->WhyNeverOn(job.slurm, deadline);
  if (why.empty()) return;
  faults.insert(absl::StrCat(job.file_name, ": compute \"", job.compute, "\": ", why));
}

absl::StatusOr<spec::ReadResult> ServiceCore::ReadAndCheck(const Submission& submission) const {
  if (!submission.base_directory.is_absolute()) {
    return absl::InvalidArgumentError("base_directory must be an absolute path");
  }
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(options_.directory));
  auto [file, of_reader] =
      spec::ReadAllOfJobFile(submission.text, submission.file, submission.base_directory, site);
  base::Faults faults;
  faults.Add(of_reader);
  std::set<std::string> of_clusters;
  CheckOffers(file.spec, base::Deadline::After(kPatienceWithClusters), of_clusters);
  for (const std::string& fault : of_clusters) faults.Add(absl::InvalidArgumentError(fault));
  faults.Add(CheckNameLength(file.spec));
  CheckPlaces(file.spec, faults);
  faults.Add(Preflight(file.spec, options_.directory, file.warnings));
  TUTTI_RETURN_IF_ERROR(faults.status());
  return std::move(file);
}

absl::StatusOr<store::Job> ServiceCore::ToJob(const Submission& submission) {
  TUTTI_ASSIGN_OR_RETURN(spec::ReadResult file, ReadAndCheck(submission));
  std::string snapshot = submission.snapshot;
  TUTTI_RETURN_IF_ERROR(AssignSnapshots(submission.snapshots, file.spec, snapshot));
  return store::Job{.created = clock_->Now(),
                    .spec = std::move(file.spec),
                    .file_text = submission.text,
                    .snapshot = std::move(snapshot),
                    .job_token = options_.random_hex(kJobTokenBytes),
                    .warnings = std::move(file.warnings)};
}

absl::StatusOr<std::vector<std::string>> ServiceCore::Check(const Submission& submission) {
  TUTTI_RETURN_IF_ERROR(CheckSpace(options_.directory));
  TUTTI_ASSIGN_OR_RETURN(spec::ReadResult file, ReadAndCheck(submission));
  if (!file.spec.name.empty() && GetJob(file.spec.name).ok()) return NameIsTaken(file.spec.name);
  return std::move(file.warnings);
}

absl::StatusOr<JobStatus> ServiceCore::Submit(const Submission& submission) {
  TUTTI_RETURN_IF_ERROR(CheckSpace(options_.directory));
  TUTTI_ASSIGN_OR_RETURN(store::Job job, ToJob(submission));
  const bool named = !job.spec.name.empty();
  for (int attempt = 0;; ++attempt) {
    job.id =
        named ? job.spec.name : absl::StrCat(SlugOf(job.spec), "-", options_.random_hex(kIdBytes));
    auto status = Insert(job, named);
    if (named || !absl::IsAlreadyExists(status.status()) || attempt == kNameAttempts) {
      return status;
    }
  }
}

absl::StatusOr<JobStatus> ServiceCore::Insert(const store::Job& job, bool named) {
  TUTTI_RETURN_IF_ERROR(BeginInsert(job));
  std::optional<Placement> placed = PlaceAtOnce(job);
  const auto events = [&](int64_t sequence) {
    std::vector<store::Event> past = {
        {.time = job.created, .state = store::JobState::kQueued, .reason = "submitted"}};
    if (!placed) return past;
    store::Job numbered{.id = job.id, .sequence = sequence};
    placed->allocation = AllocationOf(numbered);
    past.push_back({.time = clock_->Now(),
                    .state = store::JobState::kProvisioning,
                    .reason = ReasonOfStart(*placed),
                    .detail = ToJson(Detail{.placement = placed})});
    return past;
  };
  // What begins here at once is gone with this machine's power: it need not wait for the disk, and
  // only its submitter does.
  const store::Survives survives = placed ? store::Survives::kCrash : store::Survives::kPowerLoss;
  const bool begins = placed.has_value();
  // Not under the lock: those who submit at the same time share one sync of the disk.
  auto record = store_->InsertJob(job, events, survives);
  JobStatus status;
  {
    absl::MutexLock lock(&mutex_);
    EndInsert(job.id);
    if (named && absl::IsAlreadyExists(record.status())) return NameIsTaken(job.id);
    TUTTI_RETURN_IF_ERROR(record.status());
    status = Adopt(*record, std::move(placed));
  }
  if (begins) TUTTI_RETURN_IF_ERROR(BeginAndSync(job.id));
  return status;
}

// By this thread, since the loop would have to be woken; it does it if it is at work just now.
void ServiceCore::Begin(const std::string& id) {
  if (!tick_mutex_.TryLock()) return;
  Effects effects;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = live_.find(id);
    if (found != live_.end() && found->second->placed != nullptr) {
      AddEffects(*found->second, effects);
    }
  }
  Perform(effects);
  tick_mutex_.Unlock();
}

absl::Status ServiceCore::BeginAndSync(const std::string& id) {
  Begin(id);
  const absl::Status synced = store_->Sync();
  if (!synced.ok()) {  // its submitter takes it for refused
    const absl::Status canceled = Cancel(id).status();
    if (!canceled.ok()) spdlog::error("job {} cannot be canceled: {}", id, canceled.ToString());
  }
  absl::MutexLock lock(&mutex_);
  Wake();
  return synced;
}

absl::Status ServiceCore::BeginInsert(const store::Job& job) {
  absl::MutexLock lock(&mutex_);
  if (!inserting_.insert(job.id).second) {
    return absl::AlreadyExistsError(absl::StrCat("there is a job \"", job.id, "\" already"));
  }
  return absl::OkStatus();
}

LiveJob& ServiceCore::GoLive(const store::JobRecord& record) {
  LiveJob& job = *(live_[record.job.id] = std::make_unique<LiveJob>());
  job.record = record;
  if (record.job.spec.kind != spec::JobKind::kCommand) {
    job.flow = std::make_unique<LiveFlow>();
    flows_.insert(&job);
  }
  return job;
}

JobStatus ServiceCore::Adopt(const store::JobRecord& record, std::optional<Placement> placed) {
  const std::string& id = record.job.id;
  LiveJob& job = GoLive(record);
  spdlog::info("job {}: Queued: submitted", id);
  if (!placed) {
    WakeForNewJob();
    return StatusOf(job.record);
  }
  spdlog::info("job {}: Provisioning: {}", id, record.last.reason);
  auto gang = MakeGang(id, *std::move(placed), OpenLogs::kNow);
  if (gang.ok()) {
    job.placed = *std::move(gang);
    placed_.insert(&job);
    return StatusOf(job.record);
  }
  // One whose end cannot be written either is begun by the loop, as one that was queued.
  const std::string why = absl::StrCat("it could not be started: ", gang.status().message());
  const absl::Status ended = Append(job, {store::JobState::kFailed, why});
  Complain(StartTrouble(id), ended, {.job = id});
  const JobStatus status = StatusOf(job.record);
  if (ended.ok()) EndLive(job);
  return status;
}

std::optional<Placement> ServiceCore::PlaceAtOnce(const store::Job& job) {
  absl::MutexLock lock(&mutex_);
  const bool is_ours = job.spec.kind == spec::JobKind::kCommand && job.spec.compute == "local";
  const size_t waiting = live_.size() - placed_.size() - flows_.size();
  const bool is_next = waiting == 0 && inserting_.size() == 1 && observed_once_ && !stopping_;
  if (!is_ours || !is_next) return std::nullopt;
  const absl::Time now = clock_->Now();
  const scheduler::Decision decision = scheduler::Schedule({{.id = job.id,
                                                             .priority = job.spec.priority,
                                                             .node_count = job.spec.instance_count,
                                                             .time_limit = job.spec.timeout}},
                                                           Running(now), NodeNames(), now);
  if (decision.starts.empty()) return std::nullopt;
  const std::vector<std::string>& names = decision.starts.front().nodes;
  auto placement = PlacementOn(job.spec, names);
  if (!placement.ok()) return std::nullopt;
  held_[job.id] = names;
  return *std::move(placement);
}

void ServiceCore::EndInsert(const std::string& id) {
  inserting_.erase(id);
  held_.erase(id);
  changed_.SignalAll();
}

// One who names a job that is just being inserted waits until it is known what became of it.
void ServiceCore::AwaitInsert(absl::string_view id) {
  while (inserting_.contains(id)) changed_.Wait(&mutex_);
}

}  // namespace tutti::service

#include "platform/service/admission/submission_check.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "platform/engine/engine.h"
#include "platform/service/admission/inputs/table_check.h"
#include "platform/service/admission/job_name.h"
#include "platform/service/admission/place_check.h"
#include "platform/service/admission/preflight.h"
#include "platform/service/admission/resume_check.h"
#include "platform/service/admission/secret_check.h"
#include "platform/service/attempt/node_room.h"
#include "platform/service/retention/in_use.h"
#include "platform/service/secrets/image_logins.h"
#include "spec/data/file_server.h"
#include "spec/site/site.h"
#include "spec/types/asked_of_slurm.h"
#include "spec/types/job.h"

namespace tutti::service {
namespace {

using scheduler::Resources;

constexpr absl::Duration kPatienceWithClusters = absl::Seconds(3);  // of who submits
constexpr absl::Duration kPatienceWithStores = absl::Seconds(10);   // likewise

struct ReadByNfs {
  const spec::JobSpec* job;
  const std::string* name;
  const spec::Input* input;
};

void CollectReadByNfs(const spec::JobSpec& job, std::vector<ReadByNfs>& found) {
  const bool is_on_cluster = job.compute != "local" && !job.compute.empty();
  // A pipeline's are read by its steps.
  const bool reads = is_on_cluster && job.kind != spec::JobKind::kPipeline;
  for (const auto& [name, input] : job.inputs) {
    if (!reads || !input.place || input.place->kind != spec::StoreKind::kNfs) continue;
    found.push_back({&job, &name, &input});
  }
  for (const spec::Step& step : job.steps) CollectReadByNfs(step.job, found);
}

// Adds a fault, with its place in the job file, for each input of a cluster's job, also of the jobs
// below it, whose file server in `home`'s list names each node itself (spec::NamesEachNode):
// whoever has the port there would be believed.
void CheckServedInputs(const spec::JobSpec& job, const std::filesystem::path& home,
                       base::Faults& faults) {
  std::vector<ReadByNfs> inputs;
  CollectReadByNfs(job, inputs);
  if (inputs.empty()) return;
  const auto servers = spec::ReadFileServers(home);
  if (!servers.ok()) return;  // the service logs it, and serves on what it did
  for (const ReadByNfs& read : inputs) {
    const std::string store = spec::StoreOf(*read.input->place);
    const auto server = std::find_if(servers->begin(), servers->end(), [&](const auto& entry) {
      return spec::NamesEachNode(entry.second) &&
             spec::StoreOf(spec::PlaceOf(entry.second)) == store;
    });
    if (server == servers->end()) continue;
    faults.Add(absl::InvalidArgumentError(absl::StrCat(
        read.input->location.file, ":", read.input->location.line, ": input \"", *read.name,
        "\": file server ", server->first, " is at ", server->second.address,
        ", which each node of compute \"", read.job->compute,
        "\" takes for itself: give it an address that they reach (address: in its file, then tutti "
        "file-server create)")));
  }
}

std::string ShareSize(int64_t bytes) { return base::BinarySize(static_cast<uint64_t>(bytes)); }

// The first that no node has, with the most that one has of it; "" if each is there on some node.
std::string TooLarge(const Resources& share, const Resources& most) {
  const auto says = [](const char* key, const std::string& asked, const std::string& there) {
    return absl::StrCat(key, " asks for ", asked, ", and the largest node has ", there,
                        ": ask for no more, or leave resources.properties.tutti out to have whole ",
                        "nodes");
  };
  if (share.cores > most.cores) {
    return says("cpus", absl::StrCat(share.cores), absl::StrCat(most.cores));
  }
  if (share.memory_bytes > most.memory_bytes) {
    return says("memory", ShareSize(share.memory_bytes), ShareSize(most.memory_bytes));
  }
  if (share.gpus > most.gpus) {
    return says("gpus", absl::StrCat(share.gpus),
                most.gpus == 0 ? "none" : absl::StrCat(most.gpus));
  }
  return "";
}

// Checks the share of a node that the job asks for. InvalidArgument names what no node has, or how
// many nodes have such a share, and what to do. OK of whole nodes and of other computes.
absl::Status CheckNodeShare(const spec::JobSpec& job, const std::vector<engine::Node>& nodes) {
  const auto share = NodeShareOf(job);
  if (!share || job.compute != "local") return absl::OkStatus();
  Resources most;
  int able = 0;
  for (const engine::Node& node : nodes) {
    const Resources room = RoomOf(node);
    most = {std::max(most.cores, room.cores), std::max(most.memory_bytes, room.memory_bytes),
            std::max(most.gpus, room.gpus)};
    able += scheduler::Fits(scheduler::NeedOn({node.name, room}, share), room) ? 1 : 0;
  }
  if (able >= job.instance_count) return absl::OkStatus();
  const spec::SourceLocation& at = job.share_location;
  const std::string why = able > 0 ? "" : TooLarge(*share, most);
  return absl::InvalidArgumentError(absl::StrCat(
      at.line > 0 ? absl::StrCat(at.file, ":", at.line) : job.file_name,
      ": resources.properties.tutti",
      why.empty()
          ? absl::StrCat(": such a share of ", job.instance_count, " nodes is asked for, and ",
                         able, able == 1 ? " node has" : " nodes have",
                         " it: lower resources.instance_count or ask for less")
          : absl::StrCat(".", why)));
}

// The code of which the submission names a snapshot, by JobSpec::AllCode.
std::set<std::string> SentCode(const Submission& submission, const spec::JobSpec& job) {
  std::set<std::string> sent;
  for (const auto& [code, snapshot] : submission.snapshots) sent.insert(code);
  if (!submission.snapshot.empty() && !job.code.empty()) sent.insert(job.AllCode());
  return sent;
}

// Gives the place to all jobs below it whose files name none for their logs.
void KeepLogsIn(const spec::DataPlace& place, spec::JobSpec& job) {
  if (!job.logs_place) job.logs_place = place;
  for (spec::Step& step : job.steps) KeepLogsIn(place, step.job);
}

}  // namespace

absl::StatusOr<spec::ReadResult> SubmissionCheck::Read(const Submission& submission) const {
  if (!submission.base_directory.is_absolute()) {
    return absl::InvalidArgumentError("base_directory must be an absolute path");
  }
  TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<const spec::Site> site, site_.Read());
  TUTTI_ASSIGN_OR_RETURN(spec::Reading reading, ReadFiles(submission, *site));
  auto& [file, of_reader, is_job] = reading;
  if (!is_job) return of_reader;
  base::Faults faults;
  faults.Add(of_reader);
  std::set<std::string> of_clusters;
  CheckOffers(file.spec, base::Deadline::After(kPatienceWithClusters), of_clusters);
  for (const std::string& fault : of_clusters) faults.Add(absl::InvalidArgumentError(fault));
  faults.Add(CheckNameLength(file.spec));
  std::set<std::string> out_of_reach;
  CheckComputes(file.spec, faults, out_of_reach);
  for (const std::string& why : out_of_reach) {
    file.warnings.push_back(absl::StrCat(why, "; what runs there waits until it can"));
  }
  if (!submission.is_draft) {
    ReadTables(file.spec, *site, secrets_, paths_, base::Deadline::After(kPatienceWithStores),
               faults);
  }
  TUTTI_RETURN_IF_ERROR(CheckSecrets(file.spec, secrets_, state_.engines, faults));
  CheckResume(file.spec, state_, faults);
  CheckServedInputs(file.spec, state_.options.directory, faults);
  if (!submission.is_draft) {
    CheckPlaces(file.spec, secrets_, paths_, state_.options.directory,
                base::Deadline::After(kPatienceWithStores), faults, file.warnings);
  }
  {
    TUTTI_ASSIGN_OR_RETURN(const RemotePaths::Visit visit, paths_.Begin(PathsOf(file.spec)));
    faults.Add(PreflightFiles(file.spec, SentCode(submission, file.spec), state_.options.directory,
                              file.warnings));
  }
  TUTTI_ASSIGN_OR_RETURN(
      const container::Logins logins,
      LoginsOfImages(file.spec, *state_.store, secrets_, state_.engines, faults));
  if (!submission.is_draft) {
    faults.Add(PreflightNetwork(file.spec, state_.options.directory,
                                KnownSignatures(file.spec, secrets_), logins, file.warnings));
  }
  // The site's place for logs is not asked here, as a job's own is: each submission would wait for
  // it, and what it refuses is a fault of the site, which LogStorage tells.
  const absl::StatusOr<std::optional<spec::DataPlace>> kept_logs = spec::LogsPlaceOfSite(*site);
  faults.Add(kept_logs.status());
  TUTTI_RETURN_IF_ERROR(spec::InFileOrder(faults.status(), file.spec));
  if (*kept_logs) KeepLogsIn(**kept_logs, file.spec);
  return std::move(file);
}

absl::StatusOr<store::Job> SubmissionCheck::ToJob(const Submission& submission) const {
  TUTTI_ASSIGN_OR_RETURN(spec::ReadResult file, Read(submission));
  std::string snapshot = submission.snapshot;
  TUTTI_RETURN_IF_ERROR(AssignSnapshots(submission.snapshots, file.spec, snapshot));
  file.spec.directory = submission.base_directory.native();
  file.spec.origin = submission.origin;
  file.spec.origin.erase("resumes_from");
  if (!file.spec.resume.empty()) file.spec.origin["resumes_from"] = file.spec.resume;
  TouchResults(file.spec);
  return store::Job{.created = state_.clock->Now(),
                    .spec = std::move(file.spec),
                    .file_text = submission.text,
                    .snapshot = std::move(snapshot),
                    .job_token = state_.options.random_hex(kJobTokenBytes),
                    .nonce = submission.nonce,
                    .warnings = std::move(file.warnings)};
}

absl::StatusOr<spec::ModelHere> SubmissionCheck::FindModelOf(
    SharedState& state, const spec::AssetReference& reference) {
  TUTTI_ASSIGN_OR_RETURN(const ModelVersion found,
                         state.models.Find(reference.name, reference.version));
  return spec::ModelHere{found.version, found.type, state.models.PathOf(found).native()};
}

absl::StatusOr<spec::Reading> SubmissionCheck::ReadFiles(const Submission& submission,
                                                         const spec::Site& site) const {
  absl::Status away;
  const auto read_file = [&](const std::filesystem::path& file) -> absl::StatusOr<std::string> {
    const auto visit = paths_.Begin({file.native()});
    if (visit.ok()) return spec::ReadFromDisk(file);
    away = visit.status();
    return away;
  };
  spec::Reading reading = spec::ReadAllOfJobFile(submission.text, submission.file,
                                                 submission.base_directory, site, read_file);
  TUTTI_RETURN_IF_ERROR(away);
  return reading;
}

void SubmissionCheck::TouchResults(const spec::JobSpec& job) const {
  for (const std::string& used : JobsInInputs(job, state_.options.directory / "jobs")) {
    const std::filesystem::path folder = state_.files.FolderOf(used);
    if (!state_.folders.Check(folder).ok() || state_.read_work.Hangs(used, kHangs)) continue;
    state_.read_work.Do(used, [folder] { base::Touch(folder); });
  }
}

void SubmissionCheck::CheckComputes(const spec::JobSpec& job, base::Faults& faults,
                                    std::set<std::string>& out_of_reach) const {
  for (const spec::Step& step : job.steps) CheckComputes(step.job, faults, out_of_reach);
  const absl::Status fault = CheckCompute(job);
  faults.Add(fault);
  if (job.compute.empty() || !fault.ok()) return;
  const std::string why = state_.engines.WhyOutOfReach(job.compute);
  if (!why.empty()) out_of_reach.insert(why);
}

absl::Status SubmissionCheck::CheckCompute(const spec::JobSpec& job) const {
  if (job.compute.empty()) return absl::OkStatus();  // it was refused
  if (state_.engines.Of(job.compute) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(job.file_name, ": compute \"", job.compute,
                     "\" is in site.yml, but was not when the service started: restart it"));
  }
  StateLock lock(state_);
  const int nodes = static_cast<int>(state_.nodes.size());
  if (job.compute != "local") return absl::OkStatus();
  if (job.instance_count <= nodes) return CheckNodeShare(job, state_.nodes);
  const spec::SourceLocation& location =
      job.instance_count_location;  // a script's #SBATCH has none
  return absl::InvalidArgumentError(absl::StrCat(
      location.line > 0 ? absl::StrCat(location.file, ":", location.line) : job.file_name,
      ": instance_count is ", job.instance_count, ", but the cluster has ", nodes,
      nodes == 1 ? " node" : " nodes", ": the job could never start"));
}

void SubmissionCheck::CheckOffers(const spec::JobSpec& job, base::Deadline deadline,
                                  std::set<std::string>& faults) const {
  for (const spec::Step& step : job.steps) CheckOffers(step.job, deadline, faults);
  engine::Engine* const engine = state_.engines.Of(job.compute);
  if (job.kind == spec::JobKind::kPipeline || engine == nullptr) return;
  const std::string why = engine->WhyNeverOn(spec::AskedOfSlurm(job), deadline);
  if (why.empty()) return;
  faults.insert(absl::StrCat(job.file_name, ": compute \"", job.compute, "\": ", why));
}

absl::Status SubmissionCheck::AssignSnapshots(const std::map<std::string, std::string>& sent,
                                              spec::JobSpec& job, std::string& snapshot) const {
  if (const auto found = sent.find(job.AllCode()); snapshot.empty() && found != sent.end()) {
    snapshot = found->second;
  }
  if (!snapshot.empty()) {
    TUTTI_RETURN_IF_ERROR(FindSnapshot(state_, snapshot));
  } else if (!job.AllCode().empty()) {
    return absl::InvalidArgumentError(
        "the job has code, but its snapshot was not sent: PUT /v1/snapshots/… first");
  }
  for (spec::Step& step : job.steps) {
    TUTTI_RETURN_IF_ERROR(AssignSnapshots(sent, step.job, step.snapshot));
  }
  return absl::OkStatus();
}

}  // namespace tutti::service

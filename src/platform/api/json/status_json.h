// Converts the service's values to the JSON of docs/formats/rest.md, and requests from it. Pure
// functions. Text that is not UTF-8 has U+FFFD for the bytes that are not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/mlflow/file_store.h"
#include "platform/service/service.h"

namespace tutti::api {

// JobDetails is what is told of a single job beside its status: what it has logged with MLflow,
// which of its files are removed or brought to a store, its run in MLflow's tracking, and the
// memory of its largest rank in bytes.
struct JobDetails {
  mlflow::Logged logged;
  std::vector<store::RemovedFiles> removed;
  std::optional<service::StoredLogs> stored_logs;
  std::optional<tracking::Run> run;
  std::optional<uint64_t> peak_memory;
};

std::string JobJson(const service::JobStatus& job);
// Returns the same with the job's newest events, its children and its details.
std::string JobJson(const service::JobStatus& job, const service::EventPage& events,
                    const service::Children& children, const JobDetails& details);
// Returns the snapshot of each code that the job and those below it name, by its folder.
std::map<std::string, std::string> SnapshotsOf(const store::Job& job);
// Returns what the job was submitted as, which may be submitted again, and what was read of it.
// `former`: the last job of its script before it, or "".
std::string SubmissionJson(const store::Job& job, const std::string& former);
std::string EventsJson(const service::EventPage& page);
std::string TrialsJson(const service::TrialPage& page);
std::string JobsJson(const std::vector<service::JobStatus>& jobs);
// There may be ten thousand of them.
std::string SummariesJson(const std::vector<service::JobSummary>& jobs);
std::string QueuesJson(const std::vector<service::ComputeQueue>& queues);
std::string NodesJson(const service::NodeList& nodes,
                      const std::vector<file_server::ServerStatus>& file_servers);
std::string FileServersJson(const std::vector<file_server::ServerStatus>& file_servers);
// `models`: what the registered models keep, which goes by no retention.
std::string PruneJson(bool dry_run, const std::vector<service::Removal>& removals,
                      const service::ModelTotals& models);
std::string SecretsJson(const std::vector<service::SecretInfo>& secrets);
std::string ChecksJson(const std::vector<health::NodeCheck>& checks);
// Returns an entry for each folder of the service's own, without where it lies.
std::string AwayJson(const std::vector<service::AwayFolder>& folders);
std::string FilesJson(const std::vector<service::JobFile>& files);
// Returns the answer to a check of a job that would be taken.
std::string WarningsJson(const std::vector<std::string>& warnings);
// Returns these lines of a stream, each with its newline.
std::string FollowLines(const std::vector<service::FollowItem>& items);
std::string LinesJson(const service::LinesPage& page);

// Returns the values by name, each in base64: any bytes may be one.
std::string SecretValuesJson(const service::SecretValues& values);

// Returns the text of {"reason": TEXT}; InvalidArgument for any other body.
absl::StatusOr<std::string> ReasonFromJson(absl::string_view body);
// Reads what is asked of a store: {"address": TEXT}, and "write" and "seconds" where they are said.
// InvalidArgument for any other body.
absl::StatusOr<service::StorageQuestion> StorageQuestionFromJson(absl::string_view body);
// Reads the body of POST /v1/jobs. InvalidArgument says where it is wrong.
absl::StatusOr<service::Submission> SubmissionFromJson(absl::string_view body);

}  // namespace tutti::api

// Submits a job file: it is read and checked here, where its lines are, then sent with its code.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/script/script_job.h"
#include "platform/client/submit/job_text.h"
#include "spec/batchai/batch_ai_job.h"
#include "spec/types/job.h"

namespace tutti::client {

// JobFile is a job file, or a script that is a job (script/script_job.h), as KindOfScript tells.
struct JobFile {
  std::string path;                   // as the user wrote it
  std::vector<std::string> settings;  // see ApplySettings
  std::vector<KeyOption> keys;
  ScriptOptions script;
  std::optional<spec::BatchAiJob> batch_ai;  // given: what the file is, a job of Batch AI's
};

// Returns the created job, as JSON; one also where the service's answer is lost (create_job.h), for
// which `connect` makes connections to it. `home` holds the site's tables (spec/site/site.h). What
// is worth knowing on the way (warnings, the size of the code) goes to `remarks`, one a line.
// InvalidArgument for every fault of the file, of the paths in it and of the code folder; then
// nothing has been sent.
absl::StatusOr<std::string> SubmitJob(const Connect& connect, const std::filesystem::path& home,
                                      const JobFile& file, std::ostream& remarks);

// Submits `job`, a name, once more, with the code that it had then: its file with `keys` and
// `settings` applied and no name of its own; `arguments` take the place of a script's, where there
// are any. Returns and remarks as SubmitJob. InvalidArgument where the job has no such parts.
absl::StatusOr<std::string> RerunJob(const Connect& connect, const std::string& job,
                                     const std::vector<KeyOption>& keys,
                                     const std::vector<std::string>& settings,
                                     const std::vector<std::string>& arguments,
                                     std::ostream& remarks);

struct CheckedJob {
  spec::JobSpec job;
  std::vector<std::string> warnings;
  std::vector<std::string> remarks;  // of a script: what was chosen for it
};

// Returns all that SubmitJob and the service check, with nothing kept: InvalidArgument,
// AlreadyExists and the like as SubmitJob would give them. Without a service (`connect` is nullptr)
// what needs none is checked: the file, the paths in it and the code, but for code in a store.
absl::StatusOr<CheckedJob> CheckJob(const Connect* connect, const std::filesystem::path& home,
                                    const JobFile& file);

}  // namespace tutti::client

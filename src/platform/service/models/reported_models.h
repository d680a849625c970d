// Registers the models that a job's processes have asked for while they ran, by lines of their
// metrics files (docs/formats/metrics.md):
//
//   {"event": "model", "name": "net", "path": "outputs/model.pkl", "tags": {…}, …}
//
// It is done once the job's results are complete and before the job is Completed, so that a user
// who has waited for the job finds them. The ranks of a job may all say the same, and a service
// that is killed in between does all of it again: the nonce of a registration follows from the job,
// the name and the path, so that each name with each path makes one version.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/service/models/registered_model.h"
#include "platform/service/models/registered_models.h"
#include "platform/service/results/job_files.h"
#include "platform/store/store.h"

namespace tutti::service {

inline constexpr size_t kMostReportedModels = 100;  // of a job

struct ReportedModel {
  ModelCreation creation;  // without content
  std::string path;        // of the job's results: a file or a folder
};

struct ReportedModels {
  // In the order of the lines of the lowest rank that has any, then those of the others. Of lines
  // with the same name and path the last one counts.
  std::vector<ReportedModel> models;
  size_t left_out = 0;  // lines beyond kMostReportedModels
  std::string fault;    // what is wrong with the first line that cannot be read
};

// Reads them from the metrics files in a job's folder of logs.
absl::StatusOr<ReportedModels> ReadReportedModels(const std::filesystem::path& logs);

// Registers what the job has reported. Returns a note for its user on each thing that could not be
// registered, a few of them: a job that has done its work does not fail for that. Copies files.
std::vector<std::string> RegisterReportedModels(const JobFiles& files, RegisteredModels& models,
                                                const store::Job& job);

}  // namespace tutti::service

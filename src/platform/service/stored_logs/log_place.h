// Says where in a store the logs of a job lie whose file names a place for them
// (resources.properties.tutti.logs), or their site (keep_logs): in PLACE/JOB, as logs/rank-0.stdout
// and so on, with service.log and logs.stored.json, which lists them all, beside. Pure functions;
// thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spec/types/data_place.h"
#include "spec/types/job.h"

namespace tutti::service {

inline constexpr char kLogsKey[] = "resources.properties.tutti.logs";
// The job's folder has its logs here.
inline constexpr char kLogsFolder[] = "logs";
// The service's own log of the job: a line for each of its states, with the reason.
inline constexpr char kServiceLog[] = "service.log";
inline constexpr char kLogsManifest[] = "logs.stored.json";

// Returns the folder that holds the logs of job `id`, as an output, which the functions of
// input_request.h take.
spec::Output LogsOutput(const spec::DataPlace& logs_place, absl::string_view id);

// Returns that folder's address for users: azureml://datastores/NAME/paths/PATH, or of a store
// without a datastore the words of messages.
std::string ShownLogsPlace(const spec::DataPlace& logs_place, absl::string_view id);

}  // namespace tutti::service

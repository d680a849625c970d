// Writes the lines that `tutti run` and `tutti job show` print about a job: how it ended, its
// metrics, and where its results are.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/client/connection/views.h"
#include "platform/client/follow/metric_line.h"
#include "platform/client/jobs/job_parts.h"

namespace tutti::client {

// Returns the lines of the summary, the first the result in one line. `result`: the job's `result`
// metric, if it wrote one. `kept`: what there is to bring; only that is offered.
std::vector<std::string> Summary(const JobView& job, const std::optional<Metric>& result,
                                 const KeptFiles& kept);

// Returns what the job has logged with MLflow, by name: {"Metrics", "loss 0.25, top1 0.9"}, {"Model
// model", "outputs/…"}. kBrief returns the first few, in not much more than a line, and how to see
// the others.
enum class Extent { kBrief, kAll };
std::vector<std::pair<std::string, std::string>> LoggedFacts(const JobView& job, Extent extent);

// Returns what the service has to say beside how it ended, then of its children beside how they
// did: "train: not kept: …". kBrief: the first few, and how to see the others.
std::vector<std::string> NotesOf(const JobView& job, Extent extent);
// Returns the notes of the children alone.
std::vector<std::string> NotesOfChildren(const JobView& job, Extent extent);

// Returns "logs, on 2026-11-24 by the site's retention" for each kind of its files that is removed.
std::vector<std::string> RemovedLines(const JobView& job);

// Returns where its logs are in a store, or why they are not; "" of a job whose file names none.
std::string StoredLogsLine(const JobView& job);

// Returns "loss 0.25, top1 0.9"; "" of none. kBrief: the first few, and how to see the others,
// which `job_id` has: "… and 3 more: tutti job show brave_ant --all".
std::string MetricsText(const std::vector<LoggedMetricView>& metrics, Extent extent,
                        absl::string_view job_id);
std::string ArtifactsText(const std::vector<LoggedFileView>& artifacts, Extent extent,
                          absl::string_view job_id);
std::string ParamsText(const std::vector<LoggedParamView>& params, Extent extent,
                       absl::string_view job_id);

// Returns "rank 1 on n2: killed by signal 9 (SIGKILL)", marked when it followed from another.
std::string FailureLine(const FailureView& failure);

}  // namespace tutti::client

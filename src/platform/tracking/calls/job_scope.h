// Says what a job may change by its own token (docs/decisions/094-runs-of-jobs.md): runs and models
// of the experiment of its own run, and those that it has begun itself, wherever they are; of these
// alone it may delete runs, models and artifacts. Experiments it may make, and neither rename nor
// delete. It may read everything. Internal to platform/tracking.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/tracking/calls/request_fields.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::tracking {

// Checks a call of the job that has this run: PermissionDenied. OK also for a call that cannot be
// answered, as a field of it is missing.
absl::Status CheckScope(TrackingStore& store, const std::string& job_run, absl::string_view method,
                        absl::string_view call, RequestFields& fields);
// Checks the same before a file is written, or removed (DELETE). `path`: of ArtifactStore.
absl::Status CheckArtifactScope(TrackingStore& store, const std::string& job_run,
                                absl::string_view method, absl::string_view path);
// Checks the models that the metrics of a batch are of.
absl::Status CheckModelsOfBatch(TrackingStore& store, const std::string& job_run,
                                const Batch& batch);

}  // namespace tutti::tracking

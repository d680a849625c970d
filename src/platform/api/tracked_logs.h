#pragma once

#include <vector>

#include "platform/mlflow/file_store.h"
#include "platform/tracking/values/values.h"

namespace tutti::api {

// Adds what a job has logged to its run in the service's tracking, if it has logged nothing to
// files: metrics but those that MLflow measures by itself (system/…), and params; up to 1,000 of
// each.
void AddTracked(const tracking::Run& run, mlflow::Logged& logged);

// Adds what ranks have reported in the job's log under names that `logged` does not have.
void AddReported(const std::vector<mlflow::Metric>& reported, mlflow::Logged& logged);

}  // namespace tutti::api

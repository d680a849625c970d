// Orders MLflow's runs as the tree that they form. Pure functions.
#pragma once

#include <vector>

#include "platform/mlflow/file_store.h"

namespace tutti::mlflow {

// Returns the runs that have metrics, and those in which they are nested, each behind its parent,
// else in the order given. A parent that is not there, or that a run has by a circle, becomes none.
std::vector<Run> WithMetrics(std::vector<Run> runs);

}  // namespace tutti::mlflow

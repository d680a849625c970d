// SeriesJson says what a job's ranks report (docs/formats/rest.md): of each metric its course and
// its newest points, as a list of values beside those of their steps and times.
#pragma once

#include <string>
#include <vector>

#include "platform/service/logs/metric_series.h"

namespace tutti::api {

// `live`: the job has not ended.
std::string SeriesJson(const std::string& job, bool live,
                       const std::vector<service::ReportedMetric>& metrics);

}  // namespace tutti::api

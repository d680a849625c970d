// What a trial has reported of the sweep's metric, from its folder: the metrics files of its ranks
// and, once its results are there, MLflow's file stores in outputs/. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/strings/string_view.h"
#include "platform/flow/metric_reports.h"

namespace tutti::service {

// The bytes of all its metrics files: they have grown if there is something new.
uintmax_t MetricsBytes(const std::filesystem::path& job_folder);

// Of the lowest rank that has reported the metric; from MLflow's store if none has.
flow::MetricReports ReportsOf(const std::filesystem::path& job_folder, absl::string_view metric);

}  // namespace tutti::service

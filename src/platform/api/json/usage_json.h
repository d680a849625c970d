// UsageJson says what a job's processes use (docs/formats/rest.md): a list of values for each
// column, beside the list of their times.
#pragma once

#include <string>

#include "platform/service/usage/job_usage.h"

namespace tutti::api {

// Gives only the rank that was asked for, if there was one.
std::string UsageJson(const std::string& job, const service::JobUsageView& usage,
                      const service::UsageQuery& query);

}  // namespace tutti::api

// UsageJson says what a job's processes use (docs/formats/rest.md): a list of values for each
// column, beside the list of their times; and how each of its ranks stands.
#pragma once

#include <string>
#include <vector>

#include "platform/service/attempt/gang.h"
#include "platform/service/usage/job_usage.h"

namespace tutti::api {

// Gives only the rank that was asked for, if there was one; `ranks` has no other.
std::string UsageJson(const std::string& job, const service::JobUsageView& usage,
                      const std::vector<service::RankState>& ranks,
                      const service::UsageQuery& query);

}  // namespace tutti::api

// Names what a job has in a folder where every user makes files (/tmp, /dev/shm). Another user who
// knew the name beforehand could put something there first, and the job would fail or use that.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Returns 16 hexadecimal digits for `what` of this job, the same ones each time, which only who has
// the job's token can compute.
std::string PrivateName(const spec::LaunchPlan& plan, absl::string_view what);

}  // namespace tutti::launch

// Makes names for jobs whose file gives none, and checks their length. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spec/types/job.h"

namespace tutti::service {

inline constexpr size_t kNameBytes = 3;  // random ones that make a name of the service's its own

// Turns "Hello World" into "hello-world", what people recognise a job by, safe as a file name: of
// its title; else of its file, since a folder may have many; else of its experiment, by default the
// folder.
std::string SlugOf(const spec::JobSpec& job);

// Checks the names' length; InvalidArgument if the names of the job and of its steps in each other
// are too long for a folder.
absl::Status CheckNameLength(const spec::JobSpec& job);

absl::Status NameIsTaken(absl::string_view name);

}  // namespace tutti::service

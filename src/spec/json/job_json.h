// Writes a JobSpec as JSON and reads it back; the store keeps jobs so. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/types/job.h"

namespace tutti::spec {

std::string ToJson(const JobSpec& spec);

// A field that is missing keeps its default, since an older program may have written the text.
// InvalidArgument names a field that is unknown or of the wrong type.
absl::StatusOr<JobSpec> JobSpecFromJson(absl::string_view text);

}  // namespace tutti::spec

#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "platform/tracking/values/values.h"

namespace tutti::tracking {

// Returns where the artifacts of a run lie, or of a model. `folder`: of a run, its id.
std::string ArtifactUri(const Experiment& experiment, absl::string_view folder);

}  // namespace tutti::tracking

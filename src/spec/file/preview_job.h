// Converts job files in Azure ML's preview schemas of 2021 (`code: {local_path: src}`, `compute:
// {target: x}`, `type: sweep_job`, `{inputs.x}`) to today's. Pure functions, safe on hostile text;
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

struct UpgradedJob {
  std::string text;  // YAML; comments are lost
  // These could not be converted and were left out, each with its line: "job.yml:4: …".
  std::vector<std::string> notes;
};

// Returns `text` in today's schema. InvalidArgument for text that is no YAML; FailedPrecondition if
// it is of today's schema already.
absl::StatusOr<UpgradedJob> UpgradeJob(absl::string_view text, absl::string_view file_name);

}  // namespace tutti::spec

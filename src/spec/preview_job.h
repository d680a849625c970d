// Job files in Azure ML's preview schemas of 2021 (`code: {local_path: src}`, `compute: {target:
// x}`, `type: sweep_job`, `{inputs.x}`), and the same jobs in today's. Pure functions, safe on
// hostile text; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/yaml_tree.h"

namespace tutti::spec {

// Where a file tells that it is of the preview: the line, and what, as "code: {local_path: …}".
struct PreviewMark {
  int line = 0;
  std::string what;
};
std::optional<PreviewMark> FindPreviewMark(const YamlNode& root);

struct UpgradedJob {
  std::string text;  // YAML; comments are lost
  // What could not be converted and was left out, with its line: "job.yml:4: …".
  std::vector<std::string> notes;
};

// `text` in today's schema. InvalidArgument for text that is no YAML; FailedPrecondition if it is
// of today's schema already.
absl::StatusOr<UpgradedJob> UpgradeJob(absl::string_view text, absl::string_view file_name);

}  // namespace tutti::spec

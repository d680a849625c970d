// Recognises job files in Azure ML's preview schemas of 2021 (preview_job.h). Inside the room spec
// only. Pure function, safe on hostile text; thread-safe.
#pragma once

#include <optional>
#include <string>

#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// Where a file tells it: the line, and what, as "code: {local_path: …}".
struct PreviewMark {
  int line = 0;
  std::string what;
};
std::optional<PreviewMark> FindPreviewMark(const YamlNode& root);

}  // namespace tutti::spec

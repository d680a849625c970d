#include "platform/client/job_text.h"

#include <yaml-cpp/yaml.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::client {
namespace {

absl::Status Set(YAML::Node& root, const std::string& setting) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", setting, ": write KEY=VALUE, as in --set inputs.epochs=5"));
  }
  const std::vector<std::string> keys = absl::StrSplit(setting.substr(0, equals), '.');
  YAML::Node at;
  at.reset(root);
  for (const std::string& key : keys) {
    if (key.empty() || (at.IsDefined() && !at.IsMap() && !at.IsNull())) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set ", setting, ": \"", key, "\" is in nothing that has keys"));
    }
    YAML::Node next = at[key];
    at.reset(next);
  }
  const bool is_input = keys.size() == 2 && keys[0] == "inputs";
  YAML::Node value = YAML::Load(setting.substr(equals + 1));
  if (is_input && at.IsMap() && at["path"].IsDefined()) {
    at["path"] = value;
  } else {
    at = value;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ApplySettings(const std::string& text,
                                          const std::vector<std::string>& settings) {
  if (settings.empty()) return text;
  try {
    YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return absl::InvalidArgumentError("the job file is no YAML map");
    for (const std::string& setting : settings) {
      if (absl::Status status = Set(root, setting); !status.ok()) return status;
    }
    return YAML::Dump(root) + "\n";
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("--set: ", error.what()));
  }
}

}  // namespace tutti::client

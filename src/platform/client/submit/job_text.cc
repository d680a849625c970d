#include "platform/client/submit/job_text.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::client {
namespace {

absl::Status ApplySetting(YAML::Node& root, const std::string& setting) {
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

// Returns where the first command of a script begins: the comments before it may hold options of
// sbatch.
size_t FirstCommand(absl::string_view script) {
  size_t at = 0;
  while (at < script.size()) {
    const size_t end = std::min(script.find('\n', at), script.size() - 1) + 1;
    const absl::string_view line = absl::StripAsciiWhitespace(script.substr(at, end - at));
    if (!line.empty() && line[0] != '#') break;
    at = end;
  }
  return at;
}

// Adds the settings to a script: "nodes=2" is an option of sbatch, and "compute=hpc" is --clusters.
// They are put behind the script's own options, since the last one counts.
absl::StatusOr<std::string> AddOptions(const std::string& script,
                                       const std::vector<std::string>& settings) {
  std::string own = script, added;
  for (const std::string& setting : settings) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty() || absl::StrContains(setting, '\n')) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set: \"", setting, "\" must be KEY=VALUE, as nodes=2"));
    }
    absl::StrAppend(&added, " \"--", parts.first == "compute" ? "clusters" : parts.first, "=",
                    parts.second, "\"");
  }
  if (own.back() != '\n') own += '\n';
  own.insert(FirstCommand(own), absl::StrCat("#SBATCH", added, "\n"));
  return own;
}

// Returns a text that YAML reads as that very text.
std::string QuotedForYaml(const std::string& text) {
  YAML::Emitter emitter;
  emitter << YAML::DoubleQuoted << text;
  return emitter.c_str();
}

// Returns the key that says where a job runs: a pipeline has one for those of its steps that do not
// say it themselves.
const char* KeyOfCompute(const std::string& text) {
  try {
    const YAML::Node root = YAML::Load(text);
    return root.IsMap() && root["jobs"].IsDefined() ? "settings.default_compute" : "compute";
  } catch (const YAML::Exception&) {
    return "compute";  // what is wrong with the text is said when it is read
  }
}

}  // namespace

absl::StatusOr<std::string> ApplySettings(const std::string& text,
                                          const std::vector<std::string>& settings) {
  if (settings.empty()) return text;
  if (absl::StartsWith(text, "#!")) return AddOptions(text, settings);
  try {
    YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return absl::InvalidArgumentError("the job file is no YAML map");
    for (const std::string& setting : settings) {
      if (absl::Status status = ApplySetting(root, setting); !status.ok()) return status;
    }
    return YAML::Dump(root) + "\n";
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("--set: ", error.what()));
  }
}

absl::StatusOr<std::string> ApplyOptions(const std::string& text,
                                         const std::vector<KeyOption>& options) {
  const bool is_sbatch = absl::StartsWith(text, "#!");
  std::vector<std::string> settings;
  for (const KeyOption& option : options) {
    if (is_sbatch && option.sbatch.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          option.option, " is not for scripts with #SBATCH lines: sbatch has no such ", "option"));
    }
    settings.push_back(is_sbatch
                           ? absl::StrCat(option.sbatch, "=", option.value)
                           : absl::StrCat(option.key == "compute" ? KeyOfCompute(text) : option.key,
                                          "=", QuotedForYaml(option.value)));
  }
  return ApplySettings(text, settings);
}

absl::StatusOr<std::string> WithoutName(const std::string& text) {
  if (absl::StartsWith(text, "#!")) return text;
  try {
    YAML::Node root = YAML::Load(text);
    if (!root.IsMap() || !root["name"].IsDefined()) return text;
    root.remove("name");
    return YAML::Dump(root) + "\n";
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace tutti::client

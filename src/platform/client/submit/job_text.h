// Applies the command line's changes to a job file's text: `--set inputs.epochs=5`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

// Returns `text` with each "key.key=value" set; the value is read as YAML ("5", "[a, b]", "text").
// Setting an input that has a `path` sets that. Lists are not entered. Without settings the text
// comes back as it is; with some, its comments are gone and its lines have moved. InvalidArgument
// for text that is no YAML map, or a setting that has no "=" or leads through something that is no
// map. If `text` is a script with #SBATCH lines, the keys are options of sbatch, and `compute`.
absl::StatusOr<std::string> ApplySettings(const std::string& text,
                                          const std::vector<std::string>& settings);

// KeyOption is a key of the job file that an option sets: --memory 8GB.
struct KeyOption {
  std::string option;  // "--memory"
  std::string key;     // "resources.properties.tutti.memory"
  std::string value;   // a text
  std::string sbatch;  // sbatch's option for it, without its dashes: "mem"; empty: it has none
};

// Returns `text` with the options' keys set, as ApplySettings does. InvalidArgument, too, for a
// script with #SBATCH lines and an option that sbatch has not.
absl::StatusOr<std::string> ApplyOptions(const std::string& text,
                                         const std::vector<KeyOption>& options);

// Returns `text` without the job's own name, which no other job can have; its comments are gone if
// it had one.
absl::StatusOr<std::string> WithoutName(const std::string& text);

}  // namespace tutti::client

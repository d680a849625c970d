#include "platform/flow/step_key.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "spec/json/job_json.h"

namespace tutti::flow {

std::string StepKey(const spec::JobSpec& job, const std::string& snapshot,
                    const std::map<std::string, std::string>& digests) {
  spec::JobSpec essence;  // what is not copied does not count
  essence.kind = job.kind;
  essence.command = job.command;
  essence.environment = job.environment;
  for (spec::Requirement& package : essence.environment.packages) package.location.clear();
  essence.environment.programs.clear();
  essence.environment_variables = job.environment_variables;
  essence.secret_variables = job.secret_variables;
  essence.secret_files = job.secret_files;
  essence.inputs = job.inputs;
  for (auto& [name, input] : essence.inputs) {
    input.location.line = 0;
    input.asset.clear();  // what it is called does not count
    if (const auto digest = digests.find(name); digest != digests.end()) {
      // The command sees a file's name too. It does not count for a folder, which has the name of
      // some earlier job's.
      const std::string name = std::filesystem::path(input.path).filename();
      const bool is_file = absl::StartsWith(digest->second, "file:");
      input.path = is_file ? absl::StrCat(digest->second, " ", name) : digest->second;
    }
  }
  essence.outputs = job.outputs;
  essence.distribution = job.distribution;
  essence.instance_count = job.instance_count;
  essence.resume = job.resume;
  essence.sweep = job.sweep;
  return base::Hex(base::Sha256Of(absl::StrCat("1\n", snapshot, "\n", spec::ToJson(essence))));
}

}  // namespace tutti::flow

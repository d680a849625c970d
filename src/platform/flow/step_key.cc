#include "platform/flow/step_key.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "spec/job_json.h"

namespace tutti::flow {

std::string StepKey(const spec::JobSpec& job, const std::string& snapshot,
                    const std::map<std::string, std::string>& digests) {
  spec::JobSpec essence;  // what is not copied does not count
  essence.kind = job.kind;
  essence.command = job.command;
  essence.environment = job.environment;
  for (spec::Requirement& package : essence.environment.packages) package.place.clear();
  essence.environment.programs.clear();
  essence.environment_variables = job.environment_variables;
  essence.inputs = job.inputs;
  for (auto& [name, input] : essence.inputs) {
    input.place.line = 0;
    if (const auto digest = digests.find(name); digest != digests.end()) {
      input.path = digest->second;
    }
  }
  essence.outputs = job.outputs;
  essence.distribution = job.distribution;
  essence.instance_count = job.instance_count;
  essence.sweep = job.sweep;
  return base::Hex(base::Sha256Of(absl::StrCat("1\n", snapshot, "\n", spec::ToJson(essence))));
}

}  // namespace tutti::flow

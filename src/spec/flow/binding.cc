#include "spec/flow/binding.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::spec {
namespace {

const Step* FindStep(const JobSpec& pipeline, absl::string_view name) {
  for (const Step& step : pipeline.steps) {
    if (step.name == name) return &step;
  }
  return nullptr;
}

void Take(const Input& from, Input& to) {
  to.path = from.path;
  to.literal = from.literal;
  to.absent = from.absent;
  to.type = from.type;
}

}  // namespace

std::optional<Binding> ParseBinding(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '.');
  if (parts.size() == 2 && parts[0] == "inputs") return Binding{"", parts[1]};
  if (parts.size() == 4 && parts[0] == "jobs" && parts[2] == "outputs") {
    return Binding{parts[1], parts[3]};
  }
  return std::nullopt;
}

std::set<std::string> NeedsOf(const JobSpec& pipeline, const Step& step) {
  std::set<std::string> needs;
  for (const auto& [input, from] : step.inputs_from) {
    const auto binding = ParseBinding(from);
    if (binding && !binding->step.empty()) needs.insert(binding->step);
  }
  if (!pipeline.first_step.empty() && step.name != pipeline.first_step) {
    needs.insert(pipeline.first_step);
  }
  return needs;
}

std::string PathOfOutput(const JobSpec& job, const std::string& name, const std::string& folder) {
  if (name == "artifacts" && job.kind == JobKind::kCommand &&
      !absl::StrContains(job.command, "outputs.artifacts")) {
    return folder;
  }
  const auto output = job.outputs.find(name);
  const std::string location = absl::StrCat(folder, "/outputs/", name);
  if (output == job.outputs.end() || output->second.file.empty()) return location;
  // The folder of a job's results is called as the job.
  const std::string job_name = folder.substr(folder.rfind('/') + 1);
  return absl::StrCat(location, "/", WithOwnName(output->second.file, job_name));
}

JobSpec Bind(const JobSpec& pipeline, const Step& step,
             const std::function<std::string(const std::string& step)>& folder_of) {
  JobSpec job = step.job;
  for (const auto& [name, from] : step.inputs_from) {
    const auto binding = ParseBinding(from);
    Input& input = job.inputs[name];
    if (!binding) continue;  // the reader has seen to it
    const auto outer = pipeline.inputs.find(binding->name);
    if (binding->step.empty()) {
      if (outer != pipeline.inputs.end()) Take(outer->second, input);
    } else if (const Step* sibling = FindStep(pipeline, binding->step)) {
      input.path = PathOfOutput(sibling->job, binding->name, folder_of(binding->step));
    }
  }
  return job;
}

}  // namespace tutti::spec

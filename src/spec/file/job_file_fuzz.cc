// Any bytes as a job file: an error or a spec that survives its own JSON and expansion.
#include <cstdint>
#include <cstdlib>

#include "spec/file/job_file.h"
#include "spec/file/preview_job.h"
#include "spec/json/job_json.h"
#include "spec/text/expressions.h"
#include "spec/text/yaml_tree.h"

namespace {

// The upgraded job must be YAML, of any depth that was read.
void Upgrade(absl::string_view text) {
  const auto upgraded = tutti::spec::UpgradeJob(text, "job.yml");
  if (!upgraded.ok()) {
    if (upgraded.status().message().empty()) std::abort();
    return;
  }
  // Twice as long and deep as what was read is still YAML.
  const auto again = tutti::spec::ParseYaml(upgraded->text, "job.yml", {1 << 22, 64, 100'000});
  if (!again.ok()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  Upgrade(text);
  // Whatever file the job names holds the same bytes.
  const auto result =
      tutti::spec::ReadJobFile(text, "job.yml", "/base", tutti::spec::BuiltInSite(),
                               [&](const std::filesystem::path&) { return std::string(text); });
  if (!result.ok()) {
    if (result.status().message().empty()) std::abort();
    return 0;
  }
  const auto back = tutti::spec::JobSpecFromJson(tutti::spec::ToJson(result->spec));
  if (!back.ok() || back->command != result->spec.command) std::abort();
  tutti::spec::ExpressionValues values;
  for (const auto& [name, input] : back->inputs) {
    if (input.absent) {
      values.absent.insert(name);
    } else {
      values.inputs[name] = input.literal;
    }
  }
  for (const auto& [name, output] : back->outputs) values.outputs[name] = "/out";
  if (!tutti::spec::ExpandExpressions(back->command, values).ok()) std::abort();
  for (const auto& [name, value] : back->environment_variables) {
    if (!tutti::spec::ExpandExpressions(value, values).ok()) std::abort();
  }
  return 0;
}

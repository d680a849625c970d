// Any bytes as a pipeline and, behind a line of dashes, as each file that it names: an error, or a
// job whose steps all come back from their JSON, can be bound and can be expanded.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "spec/file/job_file.h"
#include "spec/flow/binding.h"
#include "spec/json/job_json.h"
#include "spec/text/expressions.h"

namespace {

using tutti::spec::JobKind;
using tutti::spec::JobSpec;

void Expand(const JobSpec& job) {
  tutti::spec::ExpressionValues values;
  for (const auto& [name, input] : job.inputs) {
    if (input.absent) {
      values.absent.insert(name);
    } else {
      values.inputs[name] = input.literal;
    }
  }
  for (const auto& [name, output] : job.outputs) values.outputs[name] = "/out";
  if (!tutti::spec::ExpandExpressions(job.command, values).ok()) std::abort();
}

void Walk(const JobSpec& job) {
  if (job.kind == JobKind::kSweep && (!job.sweep || job.sweep->parameters.empty())) std::abort();
  if (job.kind != JobKind::kPipeline) return Expand(job);
  if (job.steps.empty()) std::abort();
  for (const auto& step : job.steps) {
    tutti::spec::NeedsOf(job, step);
    Walk(tutti::spec::Bind(job, step, [](const std::string& sibling) { return "/" + sibling; }));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(bytes.find("\n-----\n"), bytes.size());
  const std::string text = "type: pipeline\n" + bytes.substr(0, cut);
  const std::string component = cut < bytes.size() ? bytes.substr(cut + 7) : "";
  const auto result =
      tutti::spec::ReadJobFile(text, "job.yml", "/base", tutti::spec::BuiltInSite(),
                               [&](const std::filesystem::path&) { return component; });
  if (!result.ok()) {
    if (result.status().message().empty()) std::abort();
    return 0;
  }
  const std::string json = tutti::spec::ToJson(result->spec);
  const auto back = tutti::spec::JobSpecFromJson(json);
  if (!back.ok() || tutti::spec::ToJson(*back) != json) std::abort();
  Walk(*back);
  return 0;
}

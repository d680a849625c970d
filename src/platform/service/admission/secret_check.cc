#include "platform/service/admission/secret_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

// Of one secret that the job names.
std::string WhyNotGiven(const spec::JobSpec& job, const std::string& name, const Secrets& secrets) {
  const auto values = secrets.ValuesOf({name});
  if (!values.ok()) return std::string(values.status().message());
  const bool is_variable = std::any_of(job.secret_variables.begin(), job.secret_variables.end(),
                                       [&](const auto& given) { return given.second == name; });
  if (!is_variable || !absl::StrContains(values->at(name), absl::string_view("\0", 1))) return "";
  return absl::StrCat("secret \"", name, "\" has a zero byte, which no variable can hold: give it ",
                      "as a file, {secret: ", name, ", file: true}");
}

}  // namespace

void CheckSecrets(const spec::JobSpec& job, const Secrets& secrets, const Engines& engines,
                  base::Faults& faults) {
  for (const spec::Step& step : job.steps) CheckSecrets(step.job, secrets, engines, faults);
  const std::set<std::string> names = SecretsOf(job);
  if (names.empty()) return;
  const spec::SourceLocation& at = job.secrets_location;
  const std::string where = at.line > 0 ? absl::StrCat(at.file, ":", at.line) : job.file_name;
  const auto add = [&](absl::string_view why) {
    faults.Add(absl::InvalidArgumentError(absl::StrCat(where, ": ", why)));
  };
  for (const std::string& name : names) {
    if (const std::string why = WhyNotGiven(job, name, secrets); !why.empty()) add(why);
  }
  const engine::Engine* const engine = engines.Of(job.compute);
  if (engine == nullptr || engine->LaunchersReachService()) return;
  add(absl::StrCat("compute \"", job.compute, "\" reaches the service by its folder alone, in ",
                   "which no secret is to lie: have the service listen where its nodes reach it ",
                   "(tutti serve --bind)"));
}

}  // namespace tutti::service

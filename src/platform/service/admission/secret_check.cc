#include "platform/service/admission/secret_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/stored_logs/log_place.h"
#include "spec/data/data_map.h"
#include "spec/data/remote_input.h"
#include "spec/data/signed_address.h"

namespace tutti::service {
namespace {

// mpirun's ranks are given their variables as JSON.
bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = base::Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Why the launchers of a compute cannot be given what is secret.
std::string OutOfReach(absl::string_view compute, absl::string_view what) {
  return absl::StrCat("compute \"", compute, "\" reaches the service by its folder alone, in ",
                      "which no ", what, what == "secret" ? " is" : " are",
                      " to lie: have the service listen where its nodes reach it ",
                      "(tutti serve --bind)");
}

// Returns why the job cannot be given one secret that it names; "" if it can.
std::string WhyNotGiven(const spec::JobSpec& job, const std::string& name, const Secrets& secrets) {
  const auto values = secrets.ValuesOf({name});
  if (!values.ok()) return std::string(values.status().message());
  const bool is_variable = std::any_of(job.secret_variables.begin(), job.secret_variables.end(),
                                       [&](const auto& given) { return given.second == name; });
  const std::string& value = values->at(name);
  const bool has_zero = absl::StrContains(value, absl::string_view("\0", 1));
  if (!is_variable || (!has_zero && IsUtf8(value))) return "";
  return absl::StrCat("secret \"", name, "\" ", has_zero ? "has a zero byte" : "is not UTF-8",
                      ", which no variable can hold: give it as a file, {secret: ", name,
                      ", file: true}");
}

// The secret by which a node reads or writes it; "": none, or not yet one.
std::string SecretOf(const spec::Input& input) {
  return input.place ? input.place->secret : spec::SecretOfAddress(input.path);
}
std::string SecretOf(const spec::Output& output) {
  return output.place ? output.place->secret : "";
}
// Whether the address of what has this secret may be read by it.
absl::Status CheckServer(const spec::Input& input, const SecretValues& values) {
  return input.place ? absl::OkStatus() : spec::WithSignature(input.path, values).status();
}
absl::Status CheckServer(const spec::Output& /*output*/, const SecretValues& /*values*/) {
  return absl::OkStatus();
}
bool IsSigned(const spec::Input& input) {
  return spec::IsRemote(input) && spec::IsSigned(input.path);
}
bool IsSigned(const spec::Output& /*output*/) { return false; }

// Adds what the credentials of its inputs, outputs and logs lack, at their lines.
void CheckPlacesOf(const spec::JobSpec& job, const Secrets& secrets, const Engines& engines,
                   base::Faults& faults) {
  const engine::Engine* const engine = engines.Of(job.compute);
  const bool reaches = engine == nullptr || engine->LaunchersReachService();
  const auto check = [&](absl::string_view what, const auto& all) {
    for (const auto& [name, one] : all) {
      const std::string secret = SecretOf(one);
      if (secret.empty() && !IsSigned(one)) continue;
      const std::string where =
          absl::StrCat(one.location.file, ":", one.location.line, ": ", what, " \"", name, "\": ");
      const absl::StatusOr<SecretValues> values =
          secret.empty() ? SecretValues() : secrets.ValuesOf({secret});
      const absl::Status known = values.ok() ? CheckServer(one, *values) : values.status();
      if (!known.ok()) faults.Add(absl::InvalidArgumentError(absl::StrCat(where, known.message())));
      if (reaches) continue;
      faults.Add(
          absl::InvalidArgumentError(absl::StrCat(where, OutOfReach(job.compute, "credentials"))));
    }
  };
  check("input", job.inputs);
  if (job.kind != spec::JobKind::kPipeline) check("output", job.outputs);
  // The service alone reaches the place of the logs.
  if (!job.logs_place || job.logs_place->secret.empty()) return;
  const absl::Status known = secrets.ValuesOf({job.logs_place->secret}).status();
  if (known.ok()) return;
  faults.Add(absl::InvalidArgumentError(absl::StrCat(
      job.logs_location.file, ":", job.logs_location.line, ": ", kLogsKey, ": ", known.message())));
}

}  // namespace

SecretValues KnownSignatures(const spec::JobSpec& job, const Secrets& secrets) {
  SecretValues known;
  for (const auto& [name, input] : job.inputs) {
    const std::string secret = spec::SecretOfAddress(input.path);
    if (secret.empty()) continue;
    auto values = secrets.ValuesOf({secret});
    if (values.ok()) known.merge(*values);
  }
  for (const spec::Step& step : job.steps) known.merge(KnownSignatures(step.job, secrets));
  return known;
}

absl::Status CheckSecrets(const spec::JobSpec& job, const Secrets& secrets, const Engines& engines,
                          base::Faults& faults) {
  for (const spec::Step& step : job.steps) {
    TUTTI_RETURN_IF_ERROR(CheckSecrets(step.job, secrets, engines, faults));
  }
  const absl::Status known = secrets.ValuesOf(SecretsOf(job)).status();
  if (absl::IsUnavailable(known)) return known;
  CheckPlacesOf(job, secrets, engines, faults);
  const std::set<std::string> names = SecretsGivenTo(job);
  if (names.empty()) return absl::OkStatus();
  const spec::SourceLocation& at = job.secrets_location;
  const std::string where = at.line > 0 ? absl::StrCat(at.file, ":", at.line) : job.file_name;
  const auto add = [&](absl::string_view why) {
    faults.Add(absl::InvalidArgumentError(absl::StrCat(where, ": ", why)));
  };
  for (const std::string& name : names) {
    if (const std::string why = WhyNotGiven(job, name, secrets); !why.empty()) add(why);
  }
  const absl::Status together = secrets.ValuesOf(names).status();
  if (absl::IsInvalidArgument(together)) add(together.message());
  const engine::Engine* const engine = engines.Of(job.compute);
  if (engine != nullptr && !engine->LaunchersReachService()) add(OutOfReach(job.compute, "secret"));
  return absl::OkStatus();
}

}  // namespace tutti::service

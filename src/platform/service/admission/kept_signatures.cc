#include "platform/service/admission/kept_signatures.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "spec/data/signed_address.h"
#include "spec/json/job_json.h"

namespace tutti::service {
namespace {

// `named` gets those that addresses name already.
void TakeOut(spec::JobSpec& job, spec::Signatures& signatures, std::set<std::string>& named) {
  for (auto& [name, input] : job.inputs) {
    const std::string secret = spec::SecretOfAddress(input.path);
    if (!secret.empty()) named.insert(secret);
    input.path = spec::WithoutSignature(input.path, signatures);
  }
  for (spec::Step& step : job.steps) TakeOut(step.job, signatures, named);
}

constexpr size_t kLeastSecret = 8;  // bytes; what is shorter may stand anywhere by chance

// Whether the text has what is secret of it, maybe between "\u0026" or other forms of YAML.
bool HasSecretOf(absl::string_view text, absl::string_view signature) {
  for (const absl::string_view parameter : absl::StrSplit(signature, '&')) {
    const auto [name, value] = std::pair<absl::string_view, absl::string_view>(
        absl::StrSplit(parameter, absl::MaxSplits('=', 1)));
    const std::string key = absl::AsciiStrToLower(name);
    if (key != "sig" && !absl::EndsWith(key, "signature")) continue;
    if (value.size() >= kLeastSecret && absl::StrContains(text, value)) return true;
  }
  return absl::StrContains(text, signature);
}

// As YAML reads a text in quotes where a line ends with a "\\".
std::string WithLinesJoined(absl::string_view text) {
  std::string joined;
  while (!text.empty()) {
    const size_t end = std::min(text.find("\\\n"), text.size());
    absl::StrAppend(&joined, text.substr(0, end));
    text.remove_prefix(end);
    if (absl::ConsumePrefix(&text, "\\\n")) text = absl::StripLeadingAsciiWhitespace(text);
  }
  return joined;
}

// Whether the text alone has one that is the beginning of another: it was cut at a "," or the like,
// which ends an address in YAML's flow style and in others does not. The same one in a comment may
// be another server's.
bool IsCut(const spec::Signatures& of_text, const spec::Signatures& of_inputs) {
  for (const auto& [name, cut] : of_text) {
    if (of_inputs.contains(name)) continue;
    for (const auto& [whole_name, whole] : of_inputs) {
      if (cut.size() < whole.size() && absl::StartsWith(whole, cut)) return true;
    }
  }
  return false;
}

}  // namespace

absl::Status KeepSignatures(Secrets& secrets, store::Job& job) {
  spec::Signatures signatures, of_text;
  std::set<std::string> named;
  job.file_text = spec::FileWithoutSignatures(job.file_text, of_text);
  TakeOut(job.spec, signatures, named);
  if (IsCut(of_text, signatures)) {
    return absl::InvalidArgumentError(absl::StrCat(
        job.spec.file_name,
        ": where the signature of an input's address ends cannot be told from the text, as of one "
        "with a comma: write %2C in its place, and likewise for quotes, brackets and braces"));
  }
  signatures.merge(of_text);
  const std::string kept =
      absl::StrCat(WithLinesJoined(job.file_text), "\n", spec::ToJson(job.spec));
  for (const auto& [name, signature] : signatures) {
    if (!HasSecretOf(kept, signature)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        job.spec.file_name,
        ": the signature of an input's address also stands where it would be kept with the job, "
        "and shown: write the address once, as \"path: ADDRESS\" in one line, without escapes"));
  }
  for (const auto& [name, signature] : signatures) {
    TUTTI_RETURN_IF_ERROR(secrets.SetSecret(name, signature));
  }
  return secrets.RenewSignatures(named);
}

}  // namespace tutti::service

#include "spec/command/secret_section.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

constexpr char kSecretsKey[] = "resources.properties.tutti.secrets";
constexpr size_t kMostSecrets = 64;  // of a job

struct GivenSecret {
  std::string secret;
  bool file = false;
};

GivenSecret GivenBy(const YamlNode::Entry& entry, const std::string& what,
                    Diagnostics& diagnostics) {
  GivenSecret given;
  if (entry.value->kind == YamlNode::Kind::kScalar) {
    given.secret = entry.value->scalar;
  } else if (entry.value->kind == YamlNode::Kind::kMapping) {
    MappingReader reader(*entry.value, what, diagnostics);
    reader.Text("secret", given.secret);
    reader.Flag("file", given.file);
    reader.Finish();
  }
  if (IsSecretName(given.secret)) return given;
  diagnostics.Error(entry.line,
                    absl::StrCat(what, " must name a secret, as in ", entry.key.substr(0, 80),
                                 ": my-token, or {secret: my-token, file: true}"));
  return {};
}

void ReadOne(const YamlNode::Entry& entry, JobSpec& spec, Diagnostics& diagnostics) {
  const std::string what = absl::StrCat(kSecretsKey, ".", entry.key.substr(0, 80));
  if (!IsIdentifier(entry.key)) {
    diagnostics.Error(
        entry.line, absl::StrCat(what, ": a variable's name must be of letters, digits and \"_\""));
    return;
  }
  if (spec.environment_variables.contains(entry.key)) {
    diagnostics.Error(entry.line, absl::StrCat(what,
                                               " is in environment_variables too: leave one "
                                               "of them out"));
  }
  GivenSecret given = GivenBy(entry, what, diagnostics);
  if (given.secret.empty()) return;
  (given.file ? spec.secret_files : spec.secret_variables)[entry.key] = std::move(given.secret);
}

}  // namespace

void ReadSecrets(const YamlNode::Entry& entry, JobSpec& spec, Diagnostics& diagnostics) {
  spec.secrets_location = {diagnostics.file_name(), entry.line};
  if (entry.value->kind != YamlNode::Kind::kMapping) {
    diagnostics.Error(entry.line, absl::StrCat(kSecretsKey,
                                               " must be a mapping of variables to secrets, "
                                               "but is ",
                                               KindName(*entry.value)));
    return;
  }
  if (entry.value->entries.size() > kMostSecrets) {
    diagnostics.Error(entry.line,
                      absl::StrCat(kSecretsKey, " has more than ", kMostSecrets, " secrets"));
    return;
  }
  for (const YamlNode::Entry& one : entry.value->entries) ReadOne(one, spec, diagnostics);
}

}  // namespace tutti::spec

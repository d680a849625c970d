#include "spec/types/identifier.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kOfDatastore = "datastore.";
constexpr absl::string_view kOfSignature = "signature.";

}  // namespace

bool IsIdentifier(absl::string_view name) {
  return !name.empty() && name.size() <= 128 && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsSecretName(absl::string_view name) { return IsJobName(name); }

std::string SecretOfDatastore(absl::string_view name) { return absl::StrCat(kOfDatastore, name); }

bool IsDatastoreSecret(absl::string_view name) {
  return absl::ConsumePrefix(&name, kOfDatastore) && IsJobName(name);
}

std::string SecretOfSignature(absl::string_view hash) { return absl::StrCat(kOfSignature, hash); }

bool IsSignatureSecret(absl::string_view name) {
  return absl::ConsumePrefix(&name, kOfSignature) && IsJobName(name);
}

bool IsJobName(absl::string_view name) {
  return name.size() <= 128 && !name.empty() && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-';
         });
}

}  // namespace tutti::spec

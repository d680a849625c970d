#include "spec/types/identifier.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace tutti::spec {

bool IsIdentifier(absl::string_view name) {
  return !name.empty() && name.size() <= 128 && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsSecretName(absl::string_view name) { return IsJobName(name); }

bool IsJobName(absl::string_view name) {
  return name.size() <= 128 && !name.empty() && absl::ascii_isalnum(name[0]) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-';
         });
}

}  // namespace tutti::spec

#include "spec/types/registry_secret.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kOfRegistry = "registry.";
constexpr size_t kLongestOfSecret = 128;

}  // namespace

std::string SecretOfRegistry(absl::string_view host) { return absl::StrCat(kOfRegistry, host); }

std::string RegistryOfSecret(absl::string_view name) {
  if (name.size() > kLongestOfSecret || !absl::ConsumePrefix(&name, kOfRegistry)) return "";
  const bool is_host = !name.empty() && absl::ascii_isalnum(name[0]) &&
                       std::all_of(name.begin(), name.end(), [](unsigned char c) {
                         return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == ':';
                       });
  return is_host ? std::string(name) : "";
}

}  // namespace tutti::spec

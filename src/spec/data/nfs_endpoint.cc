#include "spec/data/nfs_endpoint.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {

constexpr size_t kLongestNfsHost = 253;
constexpr int kMostNfsPort = 65535;

bool IsNfsHost(absl::string_view host) {
  return !host.empty() && host.size() <= kLongestNfsHost && absl::ascii_isalnum(host.front()) &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
         });
}

}  // namespace

std::optional<NfsAuthority> ParseNfsAuthority(absl::string_view text) {
  const size_t colon = text.find(':');
  NfsAuthority authority{std::string(text.substr(0, colon))};
  if (!IsNfsHost(authority.host)) return std::nullopt;
  if (colon == absl::string_view::npos) return authority;
  const absl::string_view digits = text.substr(colon + 1);
  const bool is_number = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (!is_number || !absl::SimpleAtoi(digits, &authority.port) || authority.port < 1 ||
      authority.port > kMostNfsPort) {
    return std::nullopt;
  }
  return authority;
}

std::optional<std::string> NfsEndpoint(absl::string_view authority) {
  const auto parsed = ParseNfsAuthority(authority);
  if (!parsed) return std::nullopt;
  return absl::StrCat("nfs://", absl::AsciiStrToLower(parsed->host),
                      parsed->port == kNfsPort ? "" : absl::StrCat(":", parsed->port));
}

}  // namespace tutti::spec

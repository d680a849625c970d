#include "base/text/secure_url.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::base {
namespace {

bool HasOnly(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(others, c);
  });
}

bool IsPort(absl::string_view text) {
  uint32_t port = 0;
  return HasOnly(text, "") && absl::SimpleAtoi(text, &port) && port >= 1 && port <= 65535;
}

// "a.org", "[::1]".
bool IsHost(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "[")) {
    return absl::ConsumeSuffix(&text, "]") && !text.empty() && HasOnly(text, ":.");
  }
  return !text.empty() && HasOnly(text, "-._");
}

// "/a/b".
bool IsPath(absl::string_view text) {
  if (text.empty()) return true;
  for (const absl::string_view segment : absl::StrSplit(text.substr(1), '/')) {
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (!HasOnly(segment, "-._~")) return false;
  }
  return true;
}

}  // namespace

bool IsSecureUrl(absl::string_view url) {
  const bool is_https = absl::ConsumePrefix(&url, "https://");
  if (!is_https && !absl::ConsumePrefix(&url, "http://")) return false;
  absl::string_view host = url.substr(0, url.find('/'));
  const absl::string_view path = url.substr(host.size());
  const size_t colon = host.rfind(':');
  if (colon != absl::string_view::npos && !absl::EndsWith(host, "]")) {
    if (!IsPort(host.substr(colon + 1))) return false;
    host = host.substr(0, colon);
  }
  const bool is_here = host == "127.0.0.1" || host == "localhost" || host == "[::1]";
  return (is_https || is_here) && IsHost(host) && IsPath(path);
}

}  // namespace tutti::base

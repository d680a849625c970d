#include "spec/types/image_reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace tutti::spec {
namespace {

constexpr size_t kLongestName = 512;
constexpr size_t kLongestTag = 128;
constexpr size_t kShortestDigest = 32;

bool IsLowerOrDigit(unsigned char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

bool HasOnly(absl::string_view text, absl::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains(more, c);
  });
}

bool IsHost(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const bool has_port = absl::StrContains(text, ':');
  return !parts.first.empty() && HasOnly(parts.first, ".-") &&
         (!has_port ||
          (!parts.second.empty() &&
           std::all_of(parts.second.begin(), parts.second.end(), absl::ascii_isdigit)));
}

bool IsComponent(absl::string_view text) {
  return !text.empty() && IsLowerOrDigit(text.front()) && IsLowerOrDigit(text.back()) &&
         HasOnly(text, "._-") && std::none_of(text.begin(), text.end(), absl::ascii_isupper);
}

bool IsTag(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestTag && text[0] != '.' && text[0] != '-' &&
         HasOnly(text, "._-");
}

bool IsDigest(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == 0 || colon == text.npos || text.size() - colon - 1 < kShortestDigest) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1, text.end(),
                     absl::ascii_isxdigit);
}

}  // namespace

bool IsImageReference(absl::string_view text) {
  if (text.empty() || text.size() > kLongestName || !absl::ascii_isalnum(text[0])) return false;
  if (const size_t at = text.find('@'); at != text.npos) {
    if (!IsDigest(text.substr(at + 1))) return false;
    text = text.substr(0, at);
  }
  const size_t slash = text.rfind('/');
  if (const size_t colon = text.find(':', slash == text.npos ? 0 : slash); colon != text.npos) {
    if (!IsTag(text.substr(colon + 1))) return false;
    text = text.substr(0, colon);
  }
  std::vector<absl::string_view> components = absl::StrSplit(text, '/');
  const absl::string_view first = components.front();
  const bool has_host =
      components.size() > 1 && (first == "localhost" || first.find_first_of(".:") != first.npos);
  if (has_host && !IsHost(first)) return false;
  return std::all_of(components.begin() + (has_host ? 1 : 0), components.end(), IsComponent);
}

}  // namespace tutti::spec

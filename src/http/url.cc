#include "http/url.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace tutti::http {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = absl::ascii_tolower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

absl::Status CheckPath(absl::string_view path) {
  if (path.empty() || path.front() != '/') {
    return absl::InvalidArgumentError("the request's target is not a path");
  }
  for (const absl::string_view segment : absl::StrSplit(path, '/')) {
    if (segment == "." || segment == "..") {
      return absl::InvalidArgumentError("the path has a \".\" or \"..\" segment");
    }
  }
  return absl::OkStatus();
}

// In a query, unlike in a path, "+" is a space.
absl::StatusOr<std::string> DecodeQueryPart(absl::string_view part) {
  return PercentDecode(absl::StrReplaceAll(part, {{"+", " "}}));
}

}  // namespace

absl::StatusOr<std::string> PercentDecode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) {
      return absl::InvalidArgumentError("broken % escape in the request's target");
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

absl::StatusOr<Target> ParseTarget(absl::string_view target) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  Target parsed;
  TUTTI_ASSIGN_OR_RETURN(parsed.path, PercentDecode(halves.first));
  TUTTI_RETURN_IF_ERROR(CheckPath(parsed.path));
  for (const absl::string_view item : absl::StrSplit(halves.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(item, absl::MaxSplits('=', 1));
    TUTTI_ASSIGN_OR_RETURN(std::string key, DecodeQueryPart(pair.first));
    TUTTI_ASSIGN_OR_RETURN(std::string value, DecodeQueryPart(pair.second));
    parsed.query.emplace(std::move(key), std::move(value));
  }
  return parsed;
}

absl::StatusOr<Authority> ParseBaseUrl(absl::string_view url) {
  absl::string_view rest = url;
  Authority authority;
  authority.tls = absl::ConsumePrefix(&rest, "https://");
  if (authority.tls) authority.port = 443;
  if (!authority.tls) absl::ConsumePrefix(&rest, "http://");
  absl::ConsumeSuffix(&rest, "/");
  const size_t colon = rest.rfind(':');
  if (colon != absl::string_view::npos && !absl::EndsWith(rest, "]")) {
    if (!absl::SimpleAtoi(rest.substr(colon + 1), &authority.port) || authority.port < 1 ||
        authority.port > 65535) {
      return absl::InvalidArgumentError(absl::StrCat(url, ": not http://HOST:PORT"));
    }
    rest = rest.substr(0, colon);
  }
  if (absl::ConsumePrefix(&rest, "[")) absl::ConsumeSuffix(&rest, "]");
  if (rest.empty() || rest.find('/') != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(url, ": not http://HOST:PORT"));
  }
  authority.host = std::string(rest);
  return authority;
}

}  // namespace tutti::http

#include "platform/storage/objects/object_headers.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace tutti::storage {
namespace {

constexpr size_t kMd5Digits = 32;
constexpr size_t kLongestEtag = 1024;

bool IsMd5(absl::string_view text) {
  return text.size() == kMd5Digits &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

std::string EtagIn(const HeaderLookup& header) {
  const std::string given = header("ETag");
  const std::string etag(absl::StripSuffix(absl::StripPrefix(given, "\""), "\""));
  if (!etag.empty()) return etag.size() <= kLongestEtag ? etag : "";
  const std::string generation = header("generation");
  if (generation.empty() || generation.size() > kLongestEtag) return "";
  return absl::StrCat("generation ", generation);
}

std::string Md5In(const HeaderLookup& header, const std::string& etag) {
  const std::string of_azure = absl::AsciiStrToLower(header("Content-Hash"));
  if (IsMd5(of_azure)) return of_azure;
  std::string bytes;
  if (absl::Base64Unescape(header("md5Hash"), &bytes) && 2 * bytes.size() == kMd5Digits) {
    return absl::BytesToHexString(bytes);
  }
  return IsMd5(etag) ? etag : "";
}

double ModifiedIn(const HeaderLookup& header) {
  for (const char* name : {"Last-Modified", "updated"}) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, header(name), &time, &error)) continue;
    const double seconds = static_cast<double>(absl::ToUnixMicros(time)) / 1e6;
    if (seconds > 0 && seconds <= kLatestTime) return seconds;
  }
  return 0;
}

}  // namespace

void TakeHeaders(const HeaderLookup& header, StoredObject& object) {
  object.etag = EtagIn(header);
  object.md5 = Md5In(header, object.etag);
  object.modified = ModifiedIn(header);
}

}  // namespace tutti::storage

#include "platform/storage/objects/object_headers.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace tutti::storage {
namespace {

constexpr size_t kMd5Digits = 32;
constexpr size_t kLongestEtag = 1024;
constexpr size_t kLongestChecksum = 64, kLongestGoogleHashes = 256;

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

Checksum ChecksumIn(const HeaderLookup& header) {
  const std::string type = absl::AsciiStrToUpper(header("x-amz-checksum-type"));
  const bool is_in_parts = absl::StrContains(header("etag"), '-');
  if (type == "COMPOSITE" || (is_in_parts && type != "FULL_OBJECT")) return {};
  for (const ChecksumKind kind :
       {ChecksumKind::kSha256, ChecksumKind::kSha1, ChecksumKind::kCrc64Nvme, ChecksumKind::kCrc32c,
        ChecksumKind::kCrc32}) {
    std::string bytes;
    const std::string text = header(absl::StrCat("x-amz-checksum-", NameOf(kind)).c_str());
    if (text.size() > kLongestChecksum || !absl::Base64Unescape(text, &bytes)) continue;
    if (bytes.size() == BytesOf(kind)) return {kind, bytes};
  }
  return {};
}

GoogleHashes GoogleHashesIn(const HeaderLookup& header) {
  GoogleHashes hashes;
  const std::string encoding = absl::AsciiStrToLower(header("x-goog-stored-content-encoding"));
  if (!encoding.empty() && encoding != "identity") return hashes;
  const std::string text = header("x-goog-hash");
  if (text.size() > kLongestGoogleHashes) return hashes;
  for (absl::string_view hash : absl::StrSplit(text, ',')) {
    hash = absl::StripAsciiWhitespace(hash);
    std::string bytes;
    if (absl::ConsumePrefix(&hash, "crc32c=") && absl::Base64Unescape(hash, &bytes) &&
        bytes.size() == BytesOf(ChecksumKind::kCrc32c)) {
      hashes.checksum = {ChecksumKind::kCrc32c, bytes};
    } else if (absl::ConsumePrefix(&hash, "md5=") && absl::Base64Unescape(hash, &bytes) &&
               2 * bytes.size() == kMd5Digits) {
      hashes.md5 = absl::BytesToHexString(bytes);
    }
  }
  return hashes;
}

}  // namespace tutti::storage

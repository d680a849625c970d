// Any bytes as what a store answers and our code reads itself: the text of an error, headers of an
// object, its checksums, names in a list, and the notes of an earlier fetch. The providers'
// libraries read XML and HTTP; theirs is not ours to fuzz.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/text/path_pattern.h"
#include "platform/storage/objects/checksum.h"
#include "platform/storage/objects/error_text.h"
#include "platform/storage/objects/object_headers.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/objects/object_version.h"
#include "platform/storage/storage_json.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::storage {
namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

void ReadError(absl::string_view text) {
  const absl::Status status = StatusFromText(text);
  Check(!status.ok() && status.message().size() < 400);
  Check(std::all_of(status.message().begin(), status.message().end(),
                    [](char c) { return c >= ' ' && c <= '~'; }));
}

// Each header has one of the lines, in the order in which they are asked for.
HeaderLookup HeadersOf(const std::vector<std::string>& lines) {
  return [&lines, next = size_t{0}](const char*) mutable {
    return next < lines.size() ? lines[next++] : std::string();
  };
}

void ReadHeaders(const std::vector<std::string>& lines) {
  StoredObject object{"a", 1};
  TakeHeaders(HeadersOf(lines), object);
  Check(object.etag.size() <= 1100 && (object.md5.empty() || object.md5.size() == 32));
  Check(object.modified >= 0 && object.modified <= kLatestTime);
  Check(!VersionOf(object, 1700000000).empty());
  if (object.etag.find('\0') != std::string::npos) return;  // which no header has
  const auto back = AnswerLineFromJson(ToJson(object));
  Check(back.ok() && std::get<StoredObject>(*back).md5 == object.md5);
}

void CheckSize(const Checksum& checksum) {
  Check(checksum.bytes.size() == BytesOf(checksum.kind));
  Check(checksum.kind == ChecksumKind::kNone || !TextOf(checksum).empty());
}

void ReadChecksums(const std::vector<std::string>& lines, const std::string& text) {
  CheckSize(ChecksumIn(HeadersOf(lines)));
  const auto all_alike = [&](const char*) { return text; };
  CheckSize(ChecksumIn(all_alike));
  const auto of_google = [&](const char* name) {
    return absl::string_view(name) == "x-goog-hash" ? text : std::string();
  };
  for (const GoogleHashes& hashes : {GoogleHashesIn(HeadersOf(lines)), GoogleHashesIn(of_google)}) {
    CheckSize(hashes.checksum);
    Check(hashes.checksum.kind == ChecksumKind::kNone ||
          hashes.checksum.kind == ChecksumKind::kCrc32c);
    Check(hashes.md5.empty() || hashes.md5.size() == 32);
  }
}

void ReadNames(const std::vector<std::string>& lines) {
  std::vector<StoredObject> objects;
  for (const std::string& line : lines) objects.push_back({line});
  if (!CheckNames(objects).ok()) return;
  for (const StoredObject& object : objects) {
    const std::filesystem::path path(object.path);
    Check(path.is_relative() && path.lexically_normal() == path && *path.begin() != "..");
  }
}

}  // namespace
}  // namespace tutti::storage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  tutti::storage::ReadError(text);
  tutti::storage::ReadHeaders(lines);
  tutti::storage::ReadChecksums(lines, std::string(text));
  tutti::storage::ReadNames(lines);
  tutti::storage::ManifestEntriesIn(text);
  tutti::base::MatchesPattern(lines.front(), lines.back());
  tutti::base::MatchesPattern(lines.front(), lines.back(), tutti::base::Wildcards::kClasses);
  return 0;
}

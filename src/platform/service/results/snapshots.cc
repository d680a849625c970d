#include "platform/service/results/snapshots.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/service/results/disk_room.h"

namespace tutti::service {
namespace {

absl::StatusOr<std::string> HexOf(absl::string_view name) {
  absl::string_view hex = name;
  const bool valid = absl::ConsumePrefix(&hex, "sha256:") && hex.size() == 64 &&
                     std::all_of(hex.begin(), hex.end(), [](char c) {
                       return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                     });
  if (!valid) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a snapshot is named sha256: and 64 lower-case hexadecimal digits, not \"", name, "\""));
  }
  return std::string(hex);
}

}  // namespace

absl::StatusOr<std::filesystem::path> Snapshots::Find(absl::string_view name) const {
  auto hex = HexOf(name);
  if (!hex.ok()) return hex.status();
  std::filesystem::path path = directory_ / absl::StrCat("sha256-", *hex);
  base::Touch(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return absl::NotFoundError(absl::StrCat("there is no snapshot ", name));
  }
  return path;
}

absl::StatusOr<Snapshots::Upload> Snapshots::Begin(absl::string_view name) const {
  auto hex = HexOf(name);
  if (!hex.ok()) return hex.status();
  if (absl::Status made = base::MakeDirectories(directory_); !made.ok()) return made;
  if (absl::Status room = CheckRoom(directory_); !room.ok()) return room;
  auto file = IncomingFile::Create(directory_ / absl::StrCat("sha256-", *hex), staging_,
                                   /*hashed=*/true);
  if (!file.ok()) return file.status();
  Upload upload;
  upload.hex_ = *std::move(hex);
  upload.file_ = *std::move(file);
  return upload;
}

}  // namespace tutti::service

#include "base/status.h"

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

absl::Status ErrnoStatus(absl::string_view what, int error_number) {
  return absl::ErrnoToStatus(error_number, what);
}

absl::Status ErrnoStatus(absl::string_view what) { return ErrnoStatus(what, errno); }

bool SpeaksOfAFullDisk(absl::string_view message) {
  return absl::StrContains(message, "No space left on device") ||
         absl::StrContains(message, "Disk quota exceeded");
}

absl::Status Annotate(const absl::Status& status, absl::string_view prefix) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace tutti::base

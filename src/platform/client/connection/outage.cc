#include "platform/client/connection/outage.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::client {

bool MayRecover(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

absl::Status DidNotComeBack(const absl::Status& error, absl::Duration waited) {
  return base::Annotate(
      error, absl::StrCat("the service did not come back within ", absl::FormatDuration(waited)));
}

}  // namespace tutti::client

#include "platform/client/connection/outage.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::client {
namespace {

constexpr char kNeverThere[] = "tutti/never-there";

}  // namespace

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

absl::Status NeverThere(absl::Status status) {
  status.SetPayload(kNeverThere, absl::Cord());
  return status;
}

bool WasNeverThere(const absl::Status& status) {
  return status.GetPayload(kNeverThere).has_value();
}

absl::Status DidNotComeBack(const absl::Status& error, absl::Duration waited) {
  return base::Annotate(
      error, absl::StrCat("the service did not come back within ", absl::FormatDuration(waited)));
}

}  // namespace tutti::client

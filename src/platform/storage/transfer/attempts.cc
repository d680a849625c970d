#include "platform/storage/transfer/attempts.h"

#include <string>

#include "absl/strings/cord.h"

namespace tutti::storage {
namespace {

constexpr absl::string_view kObject = "tutti.storage.object";

}  // namespace

absl::Status AboutObject(absl::Status status, absl::string_view path) {
  if (!status.ok()) status.SetPayload(kObject, absl::Cord(path));
  return status;
}

std::string ObjectOf(const absl::Status& status) {
  const auto path = status.GetPayload(kObject);
  return path.has_value() ? std::string(*path) : "";
}

}  // namespace tutti::storage

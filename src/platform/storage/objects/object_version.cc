#include "platform/storage/objects/object_version.h"

#include "absl/strings/str_format.h"

namespace tutti::storage {
namespace {

constexpr double kRounding = 2;  // seconds: lists have fractions that headers lack

}  // namespace

bool IsSettled(const StoredObject& object, int64_t settled_before) {
  return object.modified > 0 && object.modified < static_cast<double>(settled_before);
}

std::string VersionOf(const StoredObject& object, int64_t settled_before) {
  if (!object.etag.empty() && !IsSettled(object, settled_before)) return object.etag;
  return absl::StrFormat("changed %.6f", object.modified);
}

void TakeAnswer(const StoredObject& answer, StoredObject& listed) {
  const bool has_changed =
      answer.bytes != listed.bytes || answer.modified > listed.modified + kRounding;
  listed.bytes = answer.bytes;
  listed.etag = answer.etag;
  listed.md5 = answer.md5;
  if (has_changed) listed.modified = 0;
}

}  // namespace tutti::storage

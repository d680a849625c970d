#include "platform/storage/storage_fault.h"

#include <array>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::storage {
namespace {

constexpr absl::string_view kObject = "tutti.storage.object";
constexpr absl::string_view kSource = "tutti.storage.source";
constexpr absl::string_view kLacking = "tutti.storage.lacking";

constexpr std::array<std::pair<FaultSource, absl::string_view>, 4> kSources = {{
    {FaultSource::kNone, ""},
    {FaultSource::kStore, "store"},
    {FaultSource::kLogin, "login"},
    {FaultSource::kDisk, "disk"},
}};

std::string NoteOf(const absl::Status& status, absl::string_view kind) {
  const auto note = status.GetPayload(kind);
  return note.has_value() ? std::string(*note) : "";
}

}  // namespace

absl::string_view Name(FaultSource source) {
  for (const auto& [known, name] : kSources) {
    if (known == source) return name;
  }
  return "";
}

FaultSource SourceFromName(absl::string_view name) {
  for (const auto& [source, known] : kSources) {
    if (known == name) return source;
  }
  return FaultSource::kStore;
}

absl::Status WithSource(absl::Status status, FaultSource source) {
  if (!status.ok()) status.SetPayload(kSource, absl::Cord(Name(source)));
  return status;
}

FaultSource SourceOf(const absl::Status& status) { return SourceFromName(NoteOf(status, kSource)); }

absl::Status AboutObject(absl::Status status, absl::string_view path) {
  if (!status.ok()) status.SetPayload(kObject, absl::Cord(path));
  return status;
}

std::string ObjectOf(const absl::Status& status) { return NoteOf(status, kObject); }

absl::Status WithLacking(absl::Status status, int64_t bytes) {
  if (!status.ok() && bytes > 0) status.SetPayload(kLacking, absl::Cord(absl::StrCat(bytes)));
  return status;
}

int64_t LackingOf(const absl::Status& status) {
  int64_t bytes = 0;
  return absl::SimpleAtoi(NoteOf(status, kLacking), &bytes) ? bytes : 0;
}

void TakeFailure(const absl::Status& failure, absl::Status& first) {
  const bool is_better = absl::IsInvalidArgument(first) && !absl::IsInvalidArgument(failure);
  if (!failure.ok() && (first.ok() || is_better)) first = failure;
}

bool ConcernsAllObjects(const absl::Status& status) {
  const FaultSource source = SourceOf(status);
  if (source == FaultSource::kDisk) return false;
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsNotFound(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status) || source == FaultSource::kLogin;
}

}  // namespace tutti::storage

#include "runtime/train/report/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/data/source/tf_record/masked_crc32c.h"

namespace tutti::train {
namespace {

// Fields of tensorflow/core/util/event.proto and framework/summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
constexpr int kSummaryValue = 1;
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendVarint(std::string& out, uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

template <typename T>
void AppendLittleEndian(std::string& out, T number) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

void AppendKey(std::string& out, int field, WireType type) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type));
}

void AppendBytes(std::string& out, int field, absl::string_view bytes) {
  AppendKey(out, field, kBytes);
  AppendVarint(out, bytes.size());
  absl::StrAppend(&out, bytes);
}

std::string EventAt(absl::Time time) {
  std::string event;
  AppendKey(event, kWallTime, kFixed64);
  AppendLittleEndian(event,
                     std::bit_cast<uint64_t>(absl::ToDoubleSeconds(time - absl::UnixEpoch())));
  return event;
}

std::string Record(absl::string_view event) {
  std::string length, record;
  AppendLittleEndian(length, static_cast<uint64_t>(event.size()));
  absl::StrAppend(&record, length);
  AppendLittleEndian(record, data::MaskedCrc32c(length));
  absl::StrAppend(&record, event);
  AppendLittleEndian(record, data::MaskedCrc32c(event));
  return record;
}

}  // namespace

std::string VersionRecord(absl::Time time) {
  std::string event = EventAt(time);
  AppendBytes(event, kFileVersion, "brain.Event:2");
  return Record(event);
}

std::string ScalarsRecord(absl::Time time, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    AppendBytes(value, kTag, scalar.tag);
    AppendKey(value, kSimpleValue, kFixed32);
    AppendLittleEndian(value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
    AppendBytes(summary, kSummaryValue, value);
  }
  std::string event = EventAt(time);
  AppendKey(event, kStep, kVarint);
  AppendVarint(event, static_cast<uint64_t>(step));
  AppendBytes(event, kSummary, summary);
  return Record(event);
}

absl::StatusOr<EventFile> EventFile::Create(const std::filesystem::path& folder,
                                            const base::Clock& clock) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  // TensorBoard reads the files of a folder in the order of their names.
  const auto path = folder / absl::StrCat("events.out.tfevents.", absl::ToUnixSeconds(clock.Now()),
                                          ".", host.data(), ".", getpid());
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(path, O_WRONLY | O_CREAT | O_APPEND));
  TUTTI_RETURN_IF_ERROR(base::WriteAll(fd.get(), VersionRecord(clock.Now()), path.string()));
  return EventFile(path, std::move(fd), clock);
}

absl::Status EventFile::Write(int64_t step, const std::vector<Scalar>& scalars) {
  return base::AppendWhole(fd_.get(), ScalarsRecord(clock_->Now(), step, scalars), path_.string());
}

}  // namespace tutti::train

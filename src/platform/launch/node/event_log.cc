#include "platform/launch/node/event_log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

// In all texts that are values.
void HideIn(const base::TextMask& mask, nlohmann::json& value) {
  if (value.is_string()) {
    value = mask.Hide(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    for (nlohmann::json& below : value) HideIn(mask, below);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(const std::filesystem::path& file) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(file, O_RDWR | O_CREAT | O_APPEND));
  TUTTI_ASSIGN_OR_RETURN(std::string text, base::ReadFile(file));
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  TUTTI_RETURN_IF_ERROR(base::Shorten(fd.get(), static_cast<int64_t>(text.size()), file.string()));
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    lines.push_back(absl::StrCat(line, "\n"));
  }
  return std::unique_ptr<EventLog>(
      new EventLog(std::move(fd), std::move(lines), static_cast<int64_t>(text.size())));
}

void EventLog::Append(const std::string& kind, nlohmann::json fields) {
  MaskTexts(fields);
  fields["kind"] = kind;
  fields["time"] = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  std::string line = fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  absl::MutexLock lock(&mutex_);
  lines_.push_back(std::move(line));
  const absl::Status written = WriteRest();
  if (!written.ok()) spdlog::error("{}", written.ToString());
}

absl::Status EventLog::WriteRest() {
  const std::string rest =
      absl::StrJoin(lines_.begin() + static_cast<int64_t>(written_.lines), lines_.end(), "");
  if (rest.empty()) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(base::AppendWhole(fd_.get(), rest, "spool/events.jsonl"));
  written_ = {lines_.size(), written_.bytes + static_cast<int64_t>(rest.size())};
  return absl::OkStatus();
}

void EventLog::MaskWith(std::shared_ptr<const base::TextMask> mask) {
  absl::MutexLock lock(&mutex_);
  mask_ = std::move(mask);
}

void EventLog::MaskTexts(nlohmann::json& fields) const {
  std::shared_ptr<const base::TextMask> mask;
  {
    absl::MutexLock lock(&mutex_);
    mask = mask_;
  }
  if (mask != nullptr) HideIn(*mask, fields);
}

absl::Status EventLog::Sync() {
  Extent now;
  {
    absl::MutexLock lock(&mutex_);
    TUTTI_RETURN_IF_ERROR(WriteRest());
    now = written_;
  }
  const bool is_synced = ::fdatasync(fd_.get()) == 0;
  const absl::Status failed = base::ErrnoStatus("flush spool/events.jsonl");
  absl::MutexLock lock(&mutex_);
  if (is_synced) {
    synced_ = now;
    return absl::OkStatus();
  }
  // A network disk takes more than it has room for: what came since is written anew.
  if (base::Shorten(fd_.get(), synced_.bytes, "spool/events.jsonl").ok()) written_ = synced_;
  return failed;
}

int64_t EventLog::kept() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(written_.lines);
}

int64_t EventLog::size() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(lines_.size());
}

bool EventLog::finished() const {
  absl::MutexLock lock(&mutex_);
  if (lines_.empty()) return false;
  const auto last = nlohmann::json::parse(lines_.back(), nullptr, false);
  return last.is_object() && last.value("kind", "") == "finished";
}

std::string EventLog::From(int64_t first) const {
  absl::MutexLock lock(&mutex_);
  const auto begin = std::min<int64_t>(std::max<int64_t>(first - 1, 0), lines_.size());
  return absl::StrJoin(lines_.begin() + begin, lines_.end(), "");
}

bool EventLog::AwaitMoreThan(int64_t count) const {
  absl::MutexLock lock(&mutex_);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return interrupted_ || static_cast<int64_t>(lines_.size()) > count;
  };
  mutex_.Await(absl::Condition(&ready));
  return !interrupted_;
}

void EventLog::Interrupt() {
  absl::MutexLock lock(&mutex_);
  interrupted_ = true;
}

}  // namespace tutti::launch

#include "platform/storage/answer_reader.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/storage_json.h"

namespace tutti::storage {
namespace {

absl::Status NoAnswer(absl::string_view why) {
  return absl::InternalError(absl::StrCat("tutti-storage did not answer as it should: ", why));
}

}  // namespace

absl::Status AnswerReader::TakeLine(absl::string_view text) {
  if (has_ended_) return NoAnswer("more follows its last line");
  absl::StatusOr<AnswerLine> line = AnswerLineFromJson(text);
  if (!line.ok()) return NoAnswer(line.status().message());
  if (auto* const object = std::get_if<StoredObject>(&*line)) {
    auto& list = object->left_out.empty() ? result_.objects : result_.left_out;
    list.push_back(std::move(*object));
  } else if (const auto* const progress = std::get_if<StorageProgress>(&*line)) {
    if (progress_) progress_(*progress);
  } else if (auto* const done = std::get_if<StorageDone>(&*line)) {
    result_.object_count = done->objects;
    result_.bytes = done->bytes;
    result_.digest = std::move(done->digest);
    result_.is_file = done->is_file;
    has_ended_ = true;
  } else {
    const auto& failure = std::get<StorageFailure>(*line);
    failure_ = failure.path.empty() ? failure.status : AboutObject(failure.status, failure.path);
    has_ended_ = true;
  }
  return absl::OkStatus();
}

absl::Status AnswerReader::Add(absl::string_view bytes) {
  for (size_t end = bytes.find('\n'); end != absl::string_view::npos; end = bytes.find('\n')) {
    if (rest_.size() + end > kLongestAnswerLine) return NoAnswer("a line has no end");
    absl::Status status;
    if (rest_.empty()) {
      status = TakeLine(bytes.substr(0, end));
    } else {
      rest_.append(bytes.data(), end);
      status = TakeLine(rest_);
      rest_.clear();
    }
    if (!status.ok()) return status;
    bytes.remove_prefix(end + 1);
  }
  if (rest_.size() + bytes.size() > kLongestAnswerLine) return NoAnswer("a line has no end");
  rest_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<StorageResult> AnswerReader::Finish() {
  if (!has_ended_ || !rest_.empty()) return NoAnswer("it has no last line");
  if (!failure_.ok()) return failure_;
  return std::move(result_);
}

}  // namespace tutti::storage

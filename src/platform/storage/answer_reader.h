// Puts the lines of a storage program's answer together. Not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// The longest line that is taken: a path has at most a few kB.
inline constexpr size_t kLongestAnswerLine = 1 << 20;

class AnswerReader {
 public:
  // `progress` is called for each line of progress; it may be empty.
  explicit AnswerReader(std::function<void(const StorageProgress&)> progress)
      : progress_(std::move(progress)) {}

  // Takes the next bytes of the answer, cut anywhere. Internal if they are no such answer.
  absl::Status Add(absl::string_view bytes);
  // Returns the objects that have come; of an answer that ends with an error those before it.
  const std::vector<StoredObject>& objects() const { return result_.objects; }
  // Returns what came: the result, or the error that the program tells. Internal if the answer has
  // no last line, as that of a program that was killed.
  absl::StatusOr<StorageResult> Finish();

 private:
  absl::Status TakeLine(absl::string_view line);

  const std::function<void(const StorageProgress&)> progress_;
  std::string rest_;  // the beginning of a line
  StorageResult result_;
  absl::Status failure_;
  bool has_ended_ = false;
};

}  // namespace tutti::storage

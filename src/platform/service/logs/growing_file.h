// GrowingFile reads a file that others append lines to, on from where its last look ended, however
// large the file is. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::service {

class GrowingFile {
 public:
  // Lines with more bytes than `longest_line` are passed over. `begin`: of the first line to read.
  explicit GrowingFile(std::filesystem::path path, size_t longest_line = 64 << 10,
                       uint64_t begin = 0)
      : path_(std::move(path)), longest_line_(longest_line), offset_(begin) {}

  // Takes lines, of which the first begins at `offset` of the file.
  using Take = std::function<void(absl::string_view lines, uint64_t offset)>;
  // Hands the whole lines that have come to `take`, many at once; with `to_the_end`, once nothing
  // more comes, also a last line without a newline. Reads nothing from `end` on. Returns whether
  // there was anything; false if there is no such file. After an error what was read stays read,
  // and the next call goes on.
  absl::StatusOr<bool> ReadOn(bool to_the_end, const Take& take, uint64_t end = ~uint64_t{0});

  // Returns where the lines end that were handed out or passed over.
  uint64_t position() const { return offset_ - rest_.size(); }

 private:
  // Takes in the bytes at `offset_`.
  void TakeIn(absl::string_view bytes, const Take& take);

  const std::filesystem::path path_;
  const size_t longest_line_;
  uint64_t offset_ = 0;  // up to here it was read
  std::string rest_;     // the beginning of a line whose end has not come
  bool skips_ = false;   // what comes up to the next newline is of a line that is passed over
};

}  // namespace tutti::service

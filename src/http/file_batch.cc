#include "http/file_batch.h"

#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::http {
namespace {

constexpr size_t kLongestHead = 42;  // two numbers of 64 bits, and what is between and behind them

// Removes a number and the character behind it from the front.
std::optional<uint64_t> TakeNumber(absl::string_view& text, char end) {
  const size_t at = text.substr(0, kLongestHead).find(end);
  uint64_t number = 0;
  if (at == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, at), &number)) {
    return std::nullopt;
  }
  text.remove_prefix(at + 1);
  return number;
}

absl::string_view Take(absl::string_view& text, size_t size) {
  const absl::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

}  // namespace

void AppendToBatch(absl::string_view name, absl::string_view bytes, std::string& body) {
  absl::StrAppend(&body, name.size(), " ", bytes.size(), "\n", name, bytes);
}

absl::StatusOr<std::vector<BatchFile>> FilesOfBatch(absl::string_view body) {
  std::vector<BatchFile> files;
  while (!body.empty()) {
    const auto name = TakeNumber(body, ' ');
    const auto bytes = name ? TakeNumber(body, '\n') : std::nullopt;
    const bool whole = bytes && *name <= body.size() && *bytes <= body.size() - *name;
    if (!whole || files.size() == kMostOfABatch) {
      return absl::InvalidArgumentError(
          absl::StrCat("file ", files.size() + 1, " of the batch is cut off, or one too many"));
    }
    BatchFile& file = files.emplace_back();
    file.name = Take(body, *name);
    file.bytes = Take(body, *bytes);
  }
  return files;
}

}  // namespace tutti::http

// CodeArchive reads a code archive (tar, zstd: docs/formats/snapshot.md) entry by entry, trusting
// nothing in it: names are relative and without "..", and reading ends where the archive unpacks to
// more than the caller allows. Not thread-safe.
//
//   TUTTI_ASSIGN_OR_RETURN(const auto archive, CodeArchive::Open(file));
//   while (true) {
//     TUTTI_ASSIGN_OR_RETURN(const auto entry, archive->Next());
//     if (!entry) break;
//     if (entry->kind == CodeEntry::Kind::kFile) …archive->Text(…) or archive->WriteTo(…)
//   }
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

struct archive;  // libarchive's

namespace tutti::code {

// Returns the name with "./" and doubled slashes taken out; "" for the folder itself.
// InvalidArgument if it is absolute, has a ".." part or a NUL, or is longer than a path may be.
absl::StatusOr<std::string> SafeRelativePath(absl::string_view name);

struct CodeEntry {
  enum class Kind { kFile, kFolder, kLink, kHardLink, kOther };
  std::string name;  // as SafeRelativePath returns it
  Kind kind = Kind::kFile;
  bool executable = false;
  uint64_t bytes = 0;  // of a file, by its header
  std::string target;  // of a link
};

class CodeArchive {
 public:
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  // Opens the file. Reading is ResourceExhausted once it has unpacked more than `most_bytes` (by
  // less than a GiB: what a piece of the file unpacks to).
  static absl::StatusOr<std::unique_ptr<CodeArchive>> Open(const std::filesystem::path& file,
                                                           uint64_t most_bytes = kUnlimited);

  // Returns the next entry, whatever is left of the one before; nothing at the end.
  // InvalidArgument: it is no such archive, or the name is refused; else what the system said.
  absl::StatusOr<std::optional<CodeEntry>> Next();

  // Return, or write to a file that was just opened, the content of the entry that Next returned.
  // OutOfRange: it is of more than `most` bytes.
  absl::StatusOr<std::string> Text(size_t most);
  absl::Status WriteTo(int fd, absl::string_view name);

  // Returns whether the last error is that it unpacks to more than `most_bytes`.
  bool is_over() const { return is_over_; }

 private:
  struct Free {
    void operator()(::archive* reader) const;
  };

  CodeArchive(base::UniqueFd fd, std::string name, uint64_t most_bytes);
  static ssize_t Feed(::archive* reader, void* self, const void** piece);
  absl::Status Blocks(absl::FunctionRef<absl::Status(absl::string_view, uint64_t)> take);
  absl::Status Error() const;

  const base::UniqueFd fd_;
  const std::string name_;
  const uint64_t most_bytes_;
  bool is_over_ = false;
  std::array<char, 16 << 10> piece_;
  const std::unique_ptr<::archive, Free> reader_;
};

}  // namespace tutti::code

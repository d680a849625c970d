// CopyJournal notes which files of a copy are at the target, so that the same command goes on where
// one before it was cut off. It is a file of JSON lines in HOME/copies, named by a hash of both
// addresses, and gone once the copy is whole. One process at a time has it. Not thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "platform/client/storage/copy_plan.h"

namespace tutti::client {

class CopyJournal {
 public:
  // Opens that of the two addresses. Cancelled while another process copies the same.
  static absl::StatusOr<CopyJournal> Open(const std::filesystem::path& home, absl::string_view from,
                                          absl::string_view to, const std::atomic<bool>& cancelled);

  bool is_empty() const { return done_.empty(); }
  // Returns whether this version of a file has been noted.
  bool Has(const CopyItem& item) const;
  // Notes files that are at the target.
  absl::Status Add(const std::vector<CopyItem>& items);
  // Removes it: the copy is whole.
  absl::Status Finish();
  // A folder of the copy's own, whose name is the same for the same addresses, below `parent`.
  std::filesystem::path StageIn(const std::filesystem::path& parent) const;

 private:
  CopyJournal(std::filesystem::path file, base::UniqueFd lock)
      : file_(std::move(file)), lock_(std::move(lock)) {}

  std::filesystem::path file_;
  base::UniqueFd lock_;
  std::set<std::string> done_;  // what stands in its lines
};

// Returns the line of a file, without its end, which no other version of it has.
std::string JournalLine(const CopyItem& item);

}  // namespace tutti::client

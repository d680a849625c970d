// Carries a planned copy out, in batches: each goes as a whole, is noted, and is not copied again
// if the command is cut off (CopyJournal). From this machine files go up from where they lie; to
// it they come into a folder beside the target, .tutti-copy-…, and take their names once whole;
// between two stores they go by HOME/copies.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "platform/client/storage/copy_plan.h"
#include "platform/client/storage/storage_side.h"

namespace tutti::client {

// CopyJournal notes which files of a copy are at the target, so that the same command goes on where
// one before it was cut off. It is a file of JSON lines in HOME/copies, named by a hash of both
// addresses, and gone once the copy is whole. One process at a time has it. Not thread-safe.
class CopyJournal {
 public:
  // Opens the journal of the two addresses. Cancelled while another process copies the same.
  static absl::StatusOr<CopyJournal> Open(const std::filesystem::path& home, absl::string_view from,
                                          absl::string_view to, const std::atomic<bool>& cancelled);

  bool is_empty() const { return done_.empty(); }
  // Returns whether this version of a file has been noted.
  bool Has(const CopyItem& item) const;
  // Notes files that are at the target.
  absl::Status Add(const std::vector<CopyItem>& items);
  // Removes it: the copy is whole.
  absl::Status Finish();
  // Returns a folder of the copy's own below `parent`, whose name is the same for the same
  // addresses.
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

struct CopyProgress {
  int64_t files = 0, of_files = 0;
  int64_t bytes = 0, of_bytes = 0;
};

struct CopyOptions {
  std::filesystem::path home;
  BatchLimits limits;
  // Others may write to the target, a folder of this machine: no link there is followed, its own
  // path has none, and who meets one gets an error (contained_target.h).
  bool is_contained = false;
  std::function<void(const CopyProgress&)> progress;  // may be empty
  std::function<void(int64_t files)> goes_on;  // so many were there of a copy that was cut off
};

struct Copied {
  std::vector<CopyItem> items;    // without those that were at the target
  std::vector<LeftOut> left_out;  // what the source lists, and has not given
};

// Copies the plan's items; blocks. What is noted is not copied again if the target still has it in
// its size. The journal is finished once all is there. Errors are those of the sides and of this
// machine's disk; an object that the source lists and twice does not give (a key of S3 that ends
// with a slash and has bytes, or one that others remove) is left out, unless it is all there is.
absl::StatusOr<Copied> RunCopy(StorageSide& from, StorageSide& to, CopyPlan plan,
                               CopyJournal& journal, const CopyOptions& options);

}  // namespace tutti::client

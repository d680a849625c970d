// OutputStore brings what this node has of one output to the output's store, by tutti-storage, and
// remembers what is there. Files go a batch at a time, so that a launcher that is killed has little
// to send again. Not thread-safe.
//
//   stored/NAME.jsonl    in the allocation's folder: what the store has (stored_files.h)
//   stored/NAME/FILE     the manifest, under the name that it has beside the output in the store
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/launch/delivery/secret_masks.h"
#include "platform/launch/outputs/stored_files.h"
#include "platform/storage/storage_request.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Runs a request of kPut to its end; blocks. `object` is called for each file that the store has
// then, also where the request has failed. Errors as of storage::RunStorage.
using PutFunction = std::function<absl::Status(
    const storage::StorageRequest& request, const std::atomic<bool>& cancelled,
    const std::function<void(const storage::StoredObject&)>& object)>;

// What an OutputStore works with; what they refer to outlives it.
struct StoreParts {
  PutFunction put;
  // The values of the place's secrets, as the service has them now; blocks.
  std::function<absl::StatusOr<SecretValues>()> secrets;
  std::function<absl::Time()> now;         // for the manifest
  std::function<absl::Duration()> steady;  // of a clock that is never set
};

class OutputStore {
 public:
  // `plan` outlives it, and has an output of that name that has a place.
  static absl::StatusOr<OutputStore> Open(const spec::LaunchPlan& plan, const std::string& name,
                                          StoreParts parts);

  // Returns whether its store can be asked for it; a line for the job's user if not. Asks for the
  // credentials, and no store.
  absl::Status Check();

  // Puts the files that are finished: those which were the same at each look for 10 s; for one
  // that was put before and has changed since, twice as long for each time, 10 minutes at most.
  // Call it again and again while the processes run. What a process has open and does not write to
  // for so long counts as finished, and is put again once it has changed.
  absl::Status PutFinished(const std::atomic<bool>& cancelled);

  // Returns whether PutAll has something to put.
  bool HasUnstored();
  // Puts all files that the store does not have as they are, then the manifest, beside the output.
  // Call it when no process writes any more; after an error the same call goes on where this one
  // ended. The error is OutputFault's.
  absl::Status PutAll(const std::atomic<bool>& cancelled);

  // Writes the manifest, of what the store has by now, to `file`.
  absl::Status WriteManifest(const std::filesystem::path& file, bool is_whole) const;

  const std::string& name() const { return name_; }
  // Returns the place for messages.
  std::string Described() const;

 private:
  struct Found {
    std::string path;  // below the output's folder
    FileState state;
  };
  struct Seen {
    FileState state;
    absl::Duration since;  // it was so
  };

  OutputStore(const spec::LaunchPlan& plan, const std::string& name, StoreParts parts,
              StoredFiles stored);
  std::vector<Found> Files();
  std::vector<Found> Unstored();
  bool IsFinished(const Found& file);
  absl::Status Put(const std::vector<Found>& files, const std::atomic<bool>& cancelled);
  absl::Status PutBatch(std::vector<Found> batch, const std::atomic<bool>& cancelled);
  absl::StatusOr<storage::StorageRequest> Request();
  absl::Status PutManifest(const std::atomic<bool>& cancelled);
  std::filesystem::path folder() const;

  const spec::LaunchPlan& plan_;
  const std::string name_;
  const spec::Output& output_;
  const StoreParts parts_;
  StoredFiles stored_;
  std::optional<SecretValues> secrets_;  // none: to be asked for
  std::map<std::string, Seen> seen_;     // by path
  std::vector<std::string> left_out_;    // with why
};

}  // namespace tutti::launch

// OutputStore brings what this node has of one output to the output's store, by tutti-storage, and
// remembers what is there. Files go a batch at a time, so that a launcher that is killed has little
// to send again. Not thread-safe.
//
//   stored/NAME.jsonl    in the allocation's folder: what the store has (stored_files.h)
//   stored/.alive         its time is when the launcher has looked last (store_outputs.h)
//   stored/NAME/FILE     the manifest, under the name that it has beside the output in the store
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/threads/retry_pause.h"
#include "platform/launch/delivery/secret_masks.h"
#include "platform/launch/outputs/stored_files.h"
#include "platform/storage/storage_request.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// PutLimits says until when a call may work, and what ends it before.
struct PutLimits {
  const std::atomic<bool>& cancelled;
  base::Deadline deadline;
};

// Runs a request of kPut to its end; blocks. `object` is called for each file that the store has
// then, also where the request has failed. Errors as of storage::RunStorage.
using PutFunction =
    std::function<absl::Status(const storage::StorageRequest& request, const PutLimits& limits,
                               const std::function<void(const storage::StoredObject&)>& object)>;

// StoreParts is what an OutputStore works with; all that it refers to outlives the store.
struct StoreParts {
  PutFunction put;
  // Returns the values of the place's secrets, as the service has them now; blocks.
  std::function<absl::StatusOr<SecretValues>()> secrets;
  std::function<absl::Time()> now;         // of the day
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

  // Takes what is noted as stored for what the folder has, without reading it: call it before any
  // process of the job can have written to it (earlier_files.h).
  void TrustEarlier();

  // From now on leaves out, and names in the manifest, what was changed at `moment` or later: the
  // processes were killed in their midst, so that it may be half of a file, and the store may have
  // a whole one by its name.
  void LeaveOutSince(absl::Time moment) { left_out_since_ = moment; }

  // Puts the files that are finished: those which were the same at each look for 10 s; for one
  // that was put before and has changed since, or has changed as it went, or is refused, twice as
  // long for each time, 10 minutes at most. Call it again and again while the processes run. What a
  // process has open and does not write to for so long counts as finished, and is put again once it
  // has changed.
  absl::Status PutFinished(const PutLimits& limits);

  // From now on has PutAll read once more what was put so far, since a process that had mapped a
  // file may have written to it without a change of its times. Call it when no process writes any
  // more.
  void Doubt();

  // Returns whether PutAll has something to put; the disk's error if that cannot be known.
  absl::StatusOr<bool> HasUnstored();
  // Puts all files that the store does not have as they are, then the manifest, beside the output.
  // Call it when no process writes any more; after an error, which keeps no file from its turn that
  // does not meet it too, the same call goes on where this one ended. The error is OutputFault's,
  // with what it is about (storage_fault.h).
  absl::Status PutAll(const PutLimits& limits);

  // Returns which files the store does not have by what the disk tells, for messages: "2 files (a,
  // b)"; "" if it has all.
  std::string Missing();

  // Returns what of the output is never put, but is a result, as the last call has found it, and
  // why: "2 files left out: a (its name is not UTF-8), b (…)"; "" if there is none. What is no
  // result either is told with the results.
  std::string LeftOut() const;

  // Writes the manifest, of what the store has by now, to `file`. `is_whole`: that is all that may
  // be put.
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
  // Trouble counts the tries to put a file that have failed.
  struct Trouble {
    int times = 0;
    absl::Duration since;  // the last one
  };
  // Batch is a request that puts several files.
  struct Batch {
    storage::StorageRequest request;
    std::map<std::string, StoredFile> files;  // by path, with its hash
  };

  OutputStore(const spec::LaunchPlan& plan, const std::string& name, StoreParts parts,
              StoredFiles stored);
  absl::StatusOr<std::vector<Found>> Files();
  absl::StatusOr<std::vector<Found>> Unstored();
  absl::StatusOr<std::vector<Found>> UnstoredOrDoubted();
  bool IsEarlier(const std::string& path, const FileState& state) const;
  bool IsStored(const Found& file) const;
  bool IsFinished(const Found& file);
  void ForgetOthers(const std::vector<Found>& files);
  absl::Status Put(const std::vector<Found>& files, const PutLimits& limits);
  absl::Status PutBatch(const std::vector<Found>& files, const PutLimits& limits);
  absl::Status Hash(const std::vector<Found>& files, const PutLimits& limits, Batch& batch);
  void TakePut(const Batch& batch, const std::map<std::string, storage::StoredObject>& there,
               const absl::Status& put);
  absl::StatusOr<storage::StorageRequest> Request();
  void AskAnewIfRefused(const absl::Status& put);
  absl::Status PutManifest(const PutLimits& limits);
  std::filesystem::path folder() const;
  std::string file() const;  // of a uri_file its name

  const spec::LaunchPlan& plan_;
  const std::string name_;
  const spec::Output& output_;
  const StoreParts parts_;
  StoredFiles stored_;
  std::set<std::string> doubted_;        // to be read once more
  std::set<std::string> known_;          // whose content this object has read, and the store has
  std::optional<SecretValues> secrets_;  // none: to be asked for
  base::RetryPause secrets_pauses_;
  absl::Duration secrets_kept_until_ = -absl::InfiniteDuration();
  std::map<std::string, Seen> seen_;  // by path, of files that are there
  std::map<std::string, Trouble> troubles_;
  std::vector<std::string> left_out_;  // with why; the first ones
  size_t left_out_more_ = 0;           // than those
  size_t told_left_out_ = 0;           // the first of all, which are left out of the results too
  absl::Time left_out_since_ = absl::InfiniteFuture();
};

}  // namespace tutti::launch

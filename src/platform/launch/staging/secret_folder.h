// SecretFolder is the folder, in memory (/dev/shm), of the files with the values of a job's secrets
// on this node, and of a copy of all of them, for a launcher that follows this one: the service may
// have other values by then. Its name follows from the allocation's folder and the job's token: no
// other user can make it first, and the launcher that follows one that was killed finds and removes
// it. Whoever makes one removes those of this user that no launcher holds any more. Not
// thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/machine/memory_folder.h"
#include "platform/launch/delivery/secret_masks.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// The name of the copy of the token of the job's run; no secret has such a name.
inline constexpr char kTokenOfRun[] = ".token-of-run";

class SecretFolder {
 public:
  // Makes the folder: empty, mode 0700, and held as long as the object lives. FailedPrecondition if
  // /dev/shm is not in memory.
  static absl::StatusOr<SecretFolder> Make(const spec::LaunchPlan& plan);
  // Returns where it is, whether it is there or not.
  static std::filesystem::path PathOf(const spec::LaunchPlan& plan);
  // Removes it; OK if it is not there.
  static absl::Status Remove(const spec::LaunchPlan& plan);
  // Removes the job's files, and leaves the copy.
  static absl::Status RemoveFiles(const spec::LaunchPlan& plan);
  // Returns the copy; NotFound if it is not there as a whole, as where this is another machine.
  static absl::StatusOr<SecretValues> Given(const spec::LaunchPlan& plan);

  // Makes the copy.
  absl::Status Keep(const SecretValues& values) const;

  // Makes a file of mode 0400 and returns its path. `name` is a variable's.
  absl::StatusOr<std::string> AddFile(absl::string_view name, absl::string_view value) const;

 private:
  explicit SecretFolder(base::MemoryFolder folder) : folder_(std::move(folder)) {}

  base::MemoryFolder folder_;
};

}  // namespace tutti::launch

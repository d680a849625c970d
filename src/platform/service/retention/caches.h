// Caches lists and removes what can be had again of one folder: code archives, inputs that were
// fetched, Python environments. The folder is the service's own, or one that a cluster's nodes
// share with it, where launchers keep the latter two. What is removed is renamed first, which is
// one step, to a name that says that it is to go, so that a crash at any time leaves the whole of
// it or nothing under its own name; then a janitor removes it. Who takes something marks it as used
// (base::Touch) before it looks whether it is there, and who removes it looks at that mark while
// nobody can take it. Calls of a cluster's folder last for as long as its server does not answer.
// Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/threads/janitor.h"
#include "platform/service/retention/in_use.h"
#include "platform/service/retention/removal.h"

namespace tutti::service {

class Caches {
 public:
  // Looks at the service's own folder.
  explicit Caches(SharedState& state) : Caches(state, "", state.options.directory) {}
  // Looks at `root`, the folder of the compute `place`.
  Caches(SharedState& state, std::string place, std::filesystem::path root)
      : state_(state), place_(std::move(place)), root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  // Looks for the folders of all kinds, and so hangs if one of them does.
  void Ask() const;
  // Returns the kinds that lie there.
  std::vector<KeptKind> kinds() const;
  // Returns all of a kind, without what is made just now. Reads folders.
  std::vector<Kept> List(KeptKind kind, const InUse& in_use) const;
  // Removes it; false if it is not removed, since it was used after it was listed, or is being
  // made.
  absl::StatusOr<bool> Remove(const Kept& kept) const;
  // Has removed what a service before this one had renamed.
  void Resume() const;

 private:
  std::filesystem::path FolderOf(KeptKind kind) const;
  std::filesystem::path PathOf(KeptKind kind, const std::string& name) const;
  // Returns "sha256:…" of the archives that are this version's programs, for nodes that do not have
  // them: the newest of each.
  std::set<std::string> Programs() const;
  uint64_t BytesOf(KeptKind kind, const std::filesystem::path& path) const;
  uint64_t Remember(const std::filesystem::path& path, uint64_t bytes) const;
  void ForgetBytesIfOthersAreThere(KeptKind kind, const std::vector<std::string>& names) const;
  absl::StatusOr<bool> RemoveFolder(const Kept& kept) const;
  absl::StatusOr<bool> RemoveUnchanged(const Kept& kept) const;
  base::Janitor& janitor() const { return place_.empty() ? state_.janitor : own_janitor_; }

  SharedState& state_;
  const std::string place_;
  const std::filesystem::path root_;
  // A cluster's folder has its own, so that one whose server is away holds up no other removal.
  mutable base::Janitor own_janitor_;
  mutable absl::Mutex mutex_;
  // The sizes of folders in bytes, by path; a folder does not change once it is whole.
  mutable std::map<std::string, uint64_t> bytes_ ABSL_GUARDED_BY(mutex_);
  // It names the data that was there then, "+" behind what grew: data shares files, and their
  // sizes.
  mutable std::set<std::string> data_ ABSL_GUARDED_BY(mutex_);
};

// Whether a file with several names counts as a whole in each of their folders, or in equal parts.
enum class SharedFiles { kCountWhole, kCountInParts };
// Returns the bytes of all files below a folder, or of one file. Symbolic links are not followed.
uint64_t BytesBelow(const std::filesystem::path& path,
                    SharedFiles shared = SharedFiles::kCountWhole);

}  // namespace tutti::service

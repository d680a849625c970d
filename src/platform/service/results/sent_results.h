// SentResults puts the results of an allocation's nodes in their places. Nodes that share nothing
// may each have written a file of one path: that of the lowest node has the path, whichever comes
// first, one with other contents stands beside it under a name that has its node's, and an equal
// one is that one. A file is moved aside before the next one takes its path, so that a crash loses
// neither: what has no path yet is sent again. Only the service knows of both. A service that was
// started anew has forgotten which node sent what: then the last of such files stays. Thread-safe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace tutti::service {

// Two files that nodes sent under one path, and where they are now.
struct SamePath {
  std::filesystem::path path, beside;
  std::string node, beside_node;  // whose file each is
};

class SentResults {
 public:
  struct Node {
    int number = 0;
    std::string name;
  };

  // Renames what has arrived from that node to `path`, or beside it, and replaces what the node had
  // sent under that path before. Returns where files are now of which one is beside the other's;
  // nothing where the file has its own path and moved none, or is equal to the one there. Errors as
  // MoveIntoPlace has them.
  absl::StatusOr<std::optional<SamePath>> Move(const Node& node,
                                               const std::filesystem::path& arrived,
                                               const std::filesystem::path& path);

 private:
  // What lies at a path: a node's file, and the path under which it was sent.
  struct Sent {
    int node = 0;
    std::string name;  // the node's
    std::string path;
    bool operator==(const Sent&) const = default;
  };
  std::filesystem::path PathBeside(const Sent& sent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<SamePath> MoveBesideEachOther(const Sent& sent, const Sent& there,
                                               const std::filesystem::path& arrived)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;  // held while a file is renamed
  absl::flat_hash_map<std::string, Sent> sent_ ABSL_GUARDED_BY(mutex_);  // by path
};

}  // namespace tutti::service

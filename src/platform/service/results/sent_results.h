// SentResults puts the results of an allocation's nodes in their places. Nodes that share nothing
// may each have written a file of one path: the one that is whole first has the path, one with
// other contents stands beside it under a name that has the node's, and an equal one is that one.
// Only the service knows of both. A service that was started anew has forgotten which node sent
// what: then the last of such files stays. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace tutti::service {

class SentResults {
 public:
  // Renames what has arrived from that node to `path`, or beside it, and replaces what the node had
  // sent under that path before. Returns the path beside it; "" where the file has its own. Errors
  // as MoveIntoPlace has them.
  absl::StatusOr<std::filesystem::path> Move(const std::string& node,
                                             const std::filesystem::path& arrived,
                                             const std::filesystem::path& path);

 private:
  absl::Mutex mutex_;  // held while a file is renamed: who is first is decided by that
  // By the path of a file: the node that sent it, and the path under which it sent it.
  absl::flat_hash_map<std::string, std::pair<std::string, std::string>> sent_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service

// ReadOnlyView is a view of this machine's files in which some of them cannot be written to: a
// mount namespace in which each such file or folder is bound to its own path, read-only. A process
// enters it between vfork and exec (ChildOptions::before_exec), and it and all that it starts have
// every path where it was, but get EROFS from whatever would change those. Nobody else sees a
// difference. The namespace goes with its last process and the last descriptor of it.
//
// Root makes it as root, and its processes stay root. Of another user it lies in a user namespace
// (Linux allows nothing else), where this user and group are themselves and all others nobody:
// files of others show as nobody's, the user's further groups open files as before, and programs
// that are to become root (sudo, fusermount) do not. Processes that read each other's memory must
// be in the same one. Whoever made it may signal and trace those that are in it as before.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tutti::base {

class ReadOnlyView {
 public:
  struct Paths {
    std::vector<std::filesystem::path> read_only;  // with all that is mounted below them
    // These stay as they are where they lie below one of those. One that is read-only may lie below
    // them again.
    std::vector<std::filesystem::path> writable;
  };
  // Makes one; links on the way are followed. NotFound for what is not there, InvalidArgument for
  // "/", which nothing can be bound to; any other error tells that this machine does not let this
  // user do it, and in which step. Takes about 0.4 ms. Thread-safe.
  static absl::StatusOr<ReadOnlyView> Make(const Paths& paths);
  // Takes over the descriptors() of one that another process has made.
  explicit ReadOnlyView(std::vector<UniqueFd> descriptors) : namespaces_(std::move(descriptors)) {}

  // Returns its namespaces in the order in which they are entered; close-on-exec.
  std::vector<int> descriptors() const;
  // Moves the calling process into the view, and to `directory`; 0 or an errno. Call it in
  // ChildOptions::before_exec: it is async-signal-safe.
  int Enter(const char* directory) const;

 private:
  std::vector<UniqueFd> namespaces_;
};

}  // namespace tutti::base

// ClosedInChildren owns a descriptor that a child process has not even until it calls exec, where
// all that are close-on-exec go. So the lock of a folder that a service holds ends with the
// service, also while a child of it hangs in the change to its folder, which may be on a server
// that is away. Movable. Thread-safe, but for each object.
#pragma once

#include "base/unique_fd.h"

namespace tutti::base {

class ClosedInChildren {
 public:
  ClosedInChildren() = default;
  // Where too many are owned so, as any other.
  explicit ClosedInChildren(UniqueFd fd);
  ClosedInChildren(ClosedInChildren&& other) noexcept;
  ClosedInChildren& operator=(ClosedInChildren&& other) noexcept;
  ~ClosedInChildren();

  // Closes all of them. Call it in a child alone, between vfork and exec: changes no memory.
  static void CloseAllInChild();

 private:
  UniqueFd fd_;
  int slot_ = -1;
};

}  // namespace tutti::base

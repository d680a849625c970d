// NfsConnections are a program's connections to one export of an NFS server, by libnfs, which needs
// no client in the kernel and no right to mount. A connection serves one thread at a time; one that
// has failed is not used again, nor are those that lay idle beside it: a server that comes back
// knows none of them. Libnfs renews no lease, so that one that lies idle for long is dead.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "spec/data/nfs_endpoint.h"

struct nfs_context;

namespace tutti::storage {

struct EndNfsContext {
  void operator()(nfs_context* context) const;
};
using NfsContext = std::unique_ptr<nfs_context, EndNfsContext>;

// Returns the error of a call of libnfs that has returned `result`, a negative errno. Unavailable
// is what is of the connection.
absl::Status NfsStatus(int result, absl::string_view what);

// Makes a connection.
using NfsMount = std::function<absl::StatusOr<NfsContext>()>;
// Mounts an export, "/images". FailedPrecondition if the server has no such export for this
// machine, else errors are as of NfsStatus.
NfsMount MountOf(spec::NfsAuthority server, std::string exported);

class NfsConnections {
 public:
  // A connection may be idle for half of the shortest lease that servers give.
  static constexpr absl::Duration kLongestIdle = absl::Seconds(30);

  // `now`: a clock that goes forward.
  explicit NfsConnections(NfsMount mount, std::function<absl::Duration()> now = base::SteadyNow)
      : mount_(std::move(mount)), now_(std::move(now)) {}

  // Calls work(context) with a mounted connection, which it makes if none is free; and once more
  // with a new one where a kept one has failed with Unavailable. Errors of the mount are returned.
  template <typename Work>
  auto Run(const Work& work) -> decltype(work(nullptr)) {
    if (NfsContext kept = TakeKept()) {
      auto result = work(kept.get());
      if (!absl::IsUnavailable(StatusOf(result))) {
        GiveBack(std::move(kept));
        return result;
      }
      DropKept();
    }
    absl::StatusOr<NfsContext> context = mount_();
    if (!context.ok()) return context.status();
    auto result = work(context->get());
    if (!absl::IsUnavailable(StatusOf(result))) GiveBack(*std::move(context));
    return result;
  }

 private:
  struct Kept {
    NfsContext context;
    absl::Duration since;
  };

  NfsContext TakeKept();  // null if there is none
  void GiveBack(NfsContext context);
  void DropKept();
  // Takes those out that lay idle for too long; they are for the caller to end.
  std::vector<Kept> TakeIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename Value>
  static const absl::Status& StatusOf(const absl::StatusOr<Value>& result) {
    return result.status();
  }

  const NfsMount mount_;
  const std::function<absl::Duration()> now_;
  absl::Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // the last one was used last
};

}  // namespace tutti::storage

#include "platform/storage/nfs/nfs_connections.h"

#include <nfsc/libnfs.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::storage {
namespace {

// One call may take kPatience ms; a connection is requested by kSyns SYNs, which takes about seven
// seconds.
constexpr int kPatience = 60'000, kSyns = 3;
constexpr int kVerifierBytes = 8;  // of NFSv4

// The version and the port, which libnfs takes from a URL alone.
absl::Status SetServer(nfs_context* context, const spec::NfsAuthority& server) {
  const std::string url = absl::StrCat("nfs://", server.host, "/?version=4&nfsport=", server.port);
  nfs_url* const parsed = ::nfs_parse_url_incomplete(context, url.c_str());
  if (parsed == nullptr) return absl::InvalidArgumentError("libnfs does not take its address");
  ::nfs_destroy_url(parsed);
  return absl::OkStatus();
}

}  // namespace

void EndNfsContext::operator()(nfs_context* context) const { ::nfs_destroy_context(context); }

absl::Status NfsStatus(int result, absl::string_view what) {
  const int error = -result;
  const std::string message = absl::StrCat(what, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(message);
    case ESTALE:
      return absl::AbortedError(message);
    default:
      return absl::UnavailableError(message);
  }
}

namespace {

// Two connections of the same name and second would be one client to the server, which drops the
// first.
absl::StatusOr<NfsContext> Mount(const spec::NfsAuthority& server, const std::string& exported) {
  NfsContext context(::nfs_init_context());
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  TUTTI_RETURN_IF_ERROR(SetServer(context.get(), server));
  ::nfs4_set_client_name(context.get(), absl::StrCat("tutti ", base::RandomHex(16)).c_str());
  ::nfs4_set_verifier(context.get(), base::RandomHex(kVerifierBytes / 2).c_str());
  ::nfs_set_timeout(context.get(), kPatience);
  ::nfs_set_tcp_syncnt(context.get(), kSyns);
  ::nfs_set_autoreconnect(context.get(), 0);
  const int mounted = ::nfs_mount(context.get(), server.host.c_str(), exported.c_str());
  if (mounted == 0) return context;
  const absl::Status status = NfsStatus(mounted, absl::StrCat("mount ", exported));
  if (absl::IsUnavailable(status)) {
    return absl::UnavailableError(
        absl::StrCat(server.host, ":", server.port, " does not answer (", status.message(), ")"));
  }
  if (!absl::IsNotFound(status) && !absl::IsPermissionDenied(status)) return status;
  return absl::FailedPreconditionError(absl::StrCat("the server has no export \"", exported,
                                                    "\" for this machine: see who may mount it"));
}

}  // namespace

NfsMount MountOf(spec::NfsAuthority server, std::string exported) {
  return [server = std::move(server), exported = std::move(exported)] {
    return Mount(server, exported);
  };
}

NfsContext NfsConnections::TakeKept() {
  std::vector<Kept> idle;  // is ended without the lock
  absl::MutexLock lock(&mutex_);
  idle = TakeIdle();
  if (kept_.empty()) return nullptr;
  NfsContext context = std::move(kept_.back().context);
  kept_.pop_back();
  return context;
}

void NfsConnections::GiveBack(NfsContext context) {
  std::vector<Kept> idle;
  absl::MutexLock lock(&mutex_);
  idle = TakeIdle();
  kept_.push_back({std::move(context), now_()});
}

void NfsConnections::DropKept() {
  std::vector<Kept> dropped;
  absl::MutexLock lock(&mutex_);
  dropped = std::exchange(kept_, {});
}

std::vector<NfsConnections::Kept> NfsConnections::TakeIdle() {
  const absl::Duration oldest = now_() - kLongestIdle;
  const auto first = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& kept) { return kept.since >= oldest; });
  std::vector<Kept> idle(std::make_move_iterator(kept_.begin()), std::make_move_iterator(first));
  kept_.erase(kept_.begin(), first);
  return idle;
}

}  // namespace tutti::storage

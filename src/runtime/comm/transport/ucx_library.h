// Loads libucp when the first channel asks for it: a process that does not use UCX pays for none of
// its start, memory hooks and signal handlers, and runs where it is not installed. Compiled only
// where UCX's headers are.
#pragma once

#include <ucp/api/ucp.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::comm {

#define TUTTI_UCX_FUNCTIONS(X)  \
  X(ucp_config_read)            \
  X(ucp_config_modify)          \
  X(ucp_config_release)         \
  X(ucp_init_version)           \
  X(ucp_cleanup)                \
  X(ucp_worker_create)          \
  X(ucp_worker_destroy)         \
  X(ucp_worker_get_address)     \
  X(ucp_worker_release_address) \
  X(ucp_worker_get_efd)         \
  X(ucp_worker_arm)             \
  X(ucp_worker_progress)        \
  X(ucp_ep_create)              \
  X(ucp_stream_send_nbx)        \
  X(ucp_stream_recv_data_nb)    \
  X(ucp_stream_data_release) X(ucp_request_check_status) X(ucp_request_free) X(ucs_status_string)

struct UcxLibrary {
#define TUTTI_UCX_MEMBER(name) decltype(&::name) name = nullptr;
  TUTTI_UCX_FUNCTIONS(TUTTI_UCX_MEMBER)
#undef TUTTI_UCX_MEMBER

  // Returns OK, or `code` with "what: " and UCX's words.
  absl::Status Check(ucs_status_t status, absl::string_view what) const;
};

// Loads it once per process; thread-safe. FailedPrecondition when it is not installed.
absl::StatusOr<const UcxLibrary*> LoadUcx();

}  // namespace tutti::comm

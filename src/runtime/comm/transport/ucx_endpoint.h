// UcxEndpoint holds UCX's objects behind one channel, each destroyed in its turn: a context, a
// worker and the endpoint to the other side's worker, between which UCP carries a stream of bytes.
// Nothing here blocks but Make, which exchanges the workers' addresses over a socket. Compiled only
// where UCX's headers are.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "runtime/comm/rendezvous/wire/stream_socket.h"
#include "runtime/comm/transport/ucx_library.h"

namespace tutti::comm {

// Something that UCX is doing; the default is something done.
class UcxRequest {
 public:
  UcxRequest() = default;
  UcxRequest(const UcxLibrary* ucx, void* request) : ucx_(ucx), request_(request) {}
  UcxRequest(UcxRequest&& other) noexcept
      : ucx_(other.ucx_), request_(std::exchange(other.request_, nullptr)) {}
  UcxRequest& operator=(UcxRequest&& other) noexcept {
    std::swap(ucx_, other.ucx_);
    std::swap(request_, other.request_);
    return *this;
  }
  ~UcxRequest() {
    if (request_ != nullptr) ucx_->ucp_request_free(request_);
  }
  bool IsDone();

 private:
  const UcxLibrary* ucx_ = nullptr;
  void* request_ = nullptr;
};

class UcxEndpoint {
 public:
  static absl::StatusOr<std::unique_ptr<UcxEndpoint>> Make(int socket,
                                                           const std::string& transports,
                                                           const Patience& patience);
  // Checks whether UCX can be begun with these; MakeUcxChannel's words if not.
  static absl::Status Probe(const std::string& transports);
  ~UcxEndpoint();

  // Makes progress; 0 when there was nothing to do.
  unsigned Progress() { return ucx_->ucp_worker_progress(worker_); }
  // Sends a part: `part` and its bytes must stay as they are until the request is done; then they
  // need this process no more. (That is not UCX's flush, which waits for the other side's process.
  // It holds since a part is either written to where the other side finds it, or, as ZCOPY_THRESH=0
  // and a list of parts bid, not called done before the kernel or the card has it all.)
  absl::StatusOr<UcxRequest> Send(const ucp_dt_iov_t& part);
  // Returns the next bytes that have come, or none; without a look at the network.
  std::span<const std::byte> Peek();
  void Release(size_t bytes);

  int event_fd() const { return event_fd_; }
  // Returns false when there is something to make progress with; else event_fd will say so.
  bool Arm() { return ucx_->ucp_worker_arm(worker_) == UCS_OK; }
  // Returns whether UCX has lost the other side.
  bool failed() const { return failed_; }

 private:
  explicit UcxEndpoint(const UcxLibrary* ucx) : ucx_(ucx) {}
  absl::Status MakeWorker(const std::string& transports);
  absl::StatusOr<std::string> Address() const;
  absl::Status Connect(const std::string& address);

  const UcxLibrary* const ucx_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  int event_fd_ = -1;
  bool failed_ = false;
  std::byte* fragment_ = nullptr;  // as UCX handed it over
  size_t fragment_bytes_ = 0;
  size_t taken_ = 0;
};

}  // namespace tutti::comm

#ifdef TUTTI_HAS_UCX
#include "runtime/comm/transport/ucx_endpoint.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr size_t kLongestAddress = 64 << 10;

// A length of four bytes, little-endian, and the address.
absl::Status SendAddress(int socket, const std::string& address, const Patience& patience) {
  std::string length;
  for (int i = 0; i < 4; ++i) length += static_cast<char>(address.size() >> (8 * i));
  return comm::Send(socket, length + address, patience);
}

absl::StatusOr<std::string> ReceiveAddress(int socket, const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const std::string prefix, Receive(socket, 4, patience));
  size_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(prefix[i]);
  if (length == 0 || length > kLongestAddress) {
    return absl::InvalidArgumentError(absl::StrCat("an address of UCX of ", length, " bytes"));
  }
  return Receive(socket, length, patience);
}

}  // namespace

bool UcxRequest::IsDone() {
  if (request_ == nullptr) return true;
  if (ucx_->ucp_request_check_status(request_) == UCS_INPROGRESS) return false;
  ucx_->ucp_request_free(std::exchange(request_, nullptr));
  return true;
}

absl::StatusOr<std::unique_ptr<UcxEndpoint>> UcxEndpoint::Make(int socket,
                                                               const std::string& transports,
                                                               const Patience& patience) {
  TUTTI_ASSIGN_OR_RETURN(const UcxLibrary* const ucx, LoadUcx());
  std::unique_ptr<UcxEndpoint> endpoint(new UcxEndpoint(ucx));
  TUTTI_RETURN_IF_ERROR(endpoint->MakeWorker(transports));
  TUTTI_ASSIGN_OR_RETURN(const std::string own, endpoint->Address());
  TUTTI_RETURN_IF_ERROR(SendAddress(socket, own, patience));
  TUTTI_ASSIGN_OR_RETURN(const std::string other, ReceiveAddress(socket, patience));
  TUTTI_RETURN_IF_ERROR(endpoint->Connect(other));
  return endpoint;
}

absl::Status UcxEndpoint::Probe(const std::string& transports) {
  TUTTI_ASSIGN_OR_RETURN(const UcxLibrary* const ucx, LoadUcx());
  UcxEndpoint endpoint(ucx);
  return endpoint.MakeWorker(transports);
}

absl::Status UcxEndpoint::MakeWorker(const std::string& transports) {
  ucp_config_t* config = nullptr;
  TUTTI_RETURN_IF_ERROR(
      ucx_->Check(ucx_->ucp_config_read(nullptr, nullptr, &config), "read UCX's settings"));
  ucs_status_t status = UCS_OK;
  if (!transports.empty()) status = ucx_->ucp_config_modify(config, "TLS", transports.c_str());
  if (status == UCS_OK) status = ucx_->ucp_config_modify(config, "ZCOPY_THRESH", "0");
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP;
  if (status == UCS_OK) {
    status = ucx_->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
  }
  ucx_->ucp_config_release(config);
  TUTTI_RETURN_IF_ERROR(ucx_->Check(status, "start UCX"));
  ucp_worker_params_t worker = {};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  worker.events = UCP_WAKEUP_RX | UCP_WAKEUP_TX;
  TUTTI_RETURN_IF_ERROR(
      ucx_->Check(ucx_->ucp_worker_create(context_, &worker, &worker_), "make a worker of UCX"));
  return ucx_->Check(ucx_->ucp_worker_get_efd(worker_, &event_fd_), "watch a worker of UCX");
}

absl::StatusOr<std::string> UcxEndpoint::Address() const {
  ucp_address_t* address = nullptr;
  size_t length = 0;
  TUTTI_RETURN_IF_ERROR(ucx_->Check(ucx_->ucp_worker_get_address(worker_, &address, &length),
                                    "address of a worker of UCX"));
  std::string bytes(reinterpret_cast<const char*>(address), length);
  ucx_->ucp_worker_release_address(worker_, address);
  return bytes;
}

absl::Status UcxEndpoint::Connect(const std::string& address) {
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = [](void* self, ucp_ep_h, ucs_status_t) {
    static_cast<UcxEndpoint*>(self)->failed_ = true;
  };
  params.err_handler.arg = this;
  return ucx_->Check(ucx_->ucp_ep_create(worker_, &params, &endpoint_), "connect by UCX");
}

absl::StatusOr<UcxRequest> UcxEndpoint::Send(const ucp_dt_iov_t& part) {
  ucp_request_param_t param = {};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
  param.datatype = ucp_dt_make_iov();
  void* const request = ucx_->ucp_stream_send_nbx(endpoint_, &part, 1, &param);
  if (UCS_PTR_IS_ERR(request)) return ucx_->Check(UCS_PTR_STATUS(request), "send by UCX");
  return UcxRequest(ucx_, request);
}

std::span<const std::byte> UcxEndpoint::Peek() {
  if (fragment_ == nullptr) {
    size_t length = 0;
    void* const data = ucx_->ucp_stream_recv_data_nb(endpoint_, &length);
    if (UCS_PTR_IS_ERR(data)) failed_ = true;
    if (data == nullptr || UCS_PTR_IS_ERR(data)) return {};
    fragment_ = static_cast<std::byte*>(data);
    fragment_bytes_ = length;
    taken_ = 0;
  }
  return {fragment_ + taken_, fragment_bytes_ - taken_};
}

void UcxEndpoint::Release(size_t bytes) {
  taken_ += bytes;
  if (taken_ < fragment_bytes_) return;
  ucx_->ucp_stream_data_release(endpoint_, std::exchange(fragment_, nullptr));
}

UcxEndpoint::~UcxEndpoint() {
  if (fragment_ != nullptr) ucx_->ucp_stream_data_release(endpoint_, fragment_);
  // The endpoint goes with its worker, which waits for nobody.
  if (worker_ != nullptr) ucx_->ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucx_->ucp_cleanup(context_);
}

}  // namespace tutti::comm
#endif

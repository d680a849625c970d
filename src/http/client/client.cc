#include "http/client/client.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <atomic>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "http/beast.h"
#include "http/client/connect.h"
#include "http/socket.h"
#include "http/url.h"

namespace tutti::http {
namespace {

using ResponseParser = beast::http::response_parser<beast::http::buffer_body>;

constexpr uint64_t kMaxBodyInMemory = uint64_t{1} << 30;
constexpr uint64_t kMaxForeignError = 64 << 10;  // of any server: it may send for ever

enum class Peer { kService, kAnyServer };

bool MayBeRepeated(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

}  // namespace

class Client::Impl {
 public:
  Impl(std::string base_url, std::string token, std::string certificate, Peer peer)
      : base_url_(std::move(base_url)),
        is_service_(peer == Peer::kService),
        name_(absl::StrCat(peer == Peer::kService ? "the service at " : "", base_url_)),
        advice_(peer == Peer::kService ? ": is it running? start it with: tutti serve" : ""),
        token_(std::move(token)),
        certificate_(std::move(certificate)),
        authority_(ParseBaseUrl(base_url_)),
        cancel_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  absl::StatusOr<ClientResponse> Send(const ClientRequest& request) {
    if (cancelled_) return absl::CancelledError("cancelled");
    TUTTI_RETURN_IF_ERROR(authority_.status());
    const base::Deadline deadline = Sooner(request);
    if (socket_ && socket_->PeerHasGone()) socket_.reset();
    const bool kept = socket_.has_value();
    absl::StatusOr<ClientResponse> response = SendOnce(request, deadline);
    if (!response.ok() && kept && absl::IsUnavailable(response.status()) && !answer_began_ &&
        MayBeRepeated(request.method)) {
      response = SendOnce(request, deadline);
    }
    return response;
  }

  void Cancel() {
    cancelled_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(cancel_event_.get(), &one, sizeof one);
  }

  const std::string base_url_;

 private:
  static base::Deadline Sooner(const ClientRequest& request) {
    const base::Deadline own = base::Deadline::After(request.timeout);
    return request.deadline ? base::Deadline::Sooner(own, *request.deadline) : own;
  }

  // Closes the connection unless the exchange came to its regular end.
  absl::StatusOr<ClientResponse> SendOnce(const ClientRequest& request, base::Deadline deadline) {
    answer_began_ = false;
    absl::Cleanup close = [this] { socket_.reset(); };
    if (!socket_) TUTTI_RETURN_IF_ERROR(Connect(deadline));
    if (request.on_connected) request.on_connected();
    const bool unlimited = request.stall_timeout < absl::InfiniteDuration();
    socket_->Limit(unlimited ? request.deadline : deadline, request.stall_timeout);
    error_code broken;
    TUTTI_RETURN_IF_ERROR(SendRequest(request, broken));
    if (broken && !absl::IsUnavailable(StatusOf(broken))) return StatusOf(broken);
    // A server that refuses a body answers before it has read all of it: that answer is read even
    // so.
    socket_->Limit(unlimited ? Sooner(request) : deadline, absl::InfiniteDuration());
    ResponseParser parser;
    parser.header_limit(256 << 10);
    parser.body_limit(std::numeric_limits<uint64_t>::max());
    buffer_.clear();
    if (request.method == "HEAD") parser.skip(true);
    error_code code;
    beast::http::read_header(*socket_, buffer_, parser, code);
    answer_began_ = parser.got_some();
    if (code) return StatusOf(broken ? broken : code);
    if (unlimited) socket_->Limit(request.deadline, request.stall_timeout);
    TUTTI_ASSIGN_OR_RETURN(ClientResponse response, ReadAnswer(request, parser));
    if (!broken && parser.is_done() && parser.keep_alive()) std::move(close).Cancel();
    return response;
  }

  absl::Status Connect(base::Deadline deadline) {
    absl::StatusOr<base::UniqueFd> fd = ConnectTo(*authority_, cancel_event_.get(), deadline);
    if (absl::IsUnavailable(fd.status())) {
      return absl::UnavailableError(
          absl::StrCat("cannot reach ", name_.substr(0, name_.find(base_url_)), authority_->host,
                       ":", authority_->port, " (", fd.status().message(), ")", advice_));
    }
    TUTTI_RETURN_IF_ERROR(fd.status());
    socket_.emplace(*std::move(fd), cancel_event_.get());
    if (!authority_->tls) return absl::OkStatus();
    socket_->Limit(deadline, absl::InfiniteDuration());
    return socket_->ConnectTls(authority_->host, certificate_);
  }

  // Sends the request. An error of the connection goes to `broken`, since there may be an answer
  // even so. After any other error, which is returned, no answer will come: the server still waits
  // for the rest.
  absl::Status SendRequest(const ClientRequest& request, error_code& broken) {
    base::UniqueFd file;
    uint64_t length = request.body.size();
    if (!request.body_file.empty()) {
      TUTTI_ASSIGN_OR_RETURN(file, base::Open(request.body_file, O_RDONLY));
      struct stat info;
      if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return absl::InvalidArgumentError(
            absl::StrCat(request.body_file.string(), " is not a regular file"));
      }
      length = static_cast<uint64_t>(info.st_size);
    }
    SendHeader(request, length, broken);
    if (broken) return absl::OkStatus();
    if (file.valid()) return SendFile(file.get(), length, request.body_file, broken);
    boost::asio::write(*socket_, boost::asio::buffer(request.body), broken);
    return absl::OkStatus();
  }

  void SendHeader(const ClientRequest& request, uint64_t length, error_code& code) {
    beast::http::request<beast::http::empty_body> header;
    header.method_string(request.method);
    header.target(request.target);
    header.version(11);
    header.set(beast::http::field::host, absl::StrCat(authority_->host, ":", authority_->port));
    header.set(beast::http::field::user_agent, "tutti");
    if (!token_.empty()) {
      header.set(beast::http::field::authorization, absl::StrCat("Bearer ", token_));
    }
    const bool has_body = length > 0 || (request.method != "GET" && request.method != "HEAD");
    if (has_body) header.content_length(length);
    if (has_body && length > 0) {
      header.set(beast::http::field::content_type, request.content_type);
    }
    for (const auto& [name, value] : request.headers) header.set(name, value);
    beast::http::request_serializer<beast::http::empty_body> serializer(header);
    socket_->ExpectMore(length > 0);
    beast::http::write_header(*socket_, serializer, code);
    socket_->ExpectMore(false);
  }

  absl::Status SendFile(int file, uint64_t left, const std::filesystem::path& name,
                        error_code& broken) {
    std::string block(kBlockBytes * 4, '\0');  // read and send: sendfile would raise SIGPIPE
    while (left > 0 && !broken) {
      const ssize_t n = ::read(file, block.data(), std::min<uint64_t>(left, block.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", name.string()));
      if (n == 0) {
        return absl::DataLossError(
            absl::StrCat(name.string(), " became shorter while it was sent"));
      }
      boost::asio::write(*socket_, boost::asio::buffer(block.data(), static_cast<size_t>(n)),
                         broken);
      left -= static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ClientResponse> ReadAnswer(const ClientRequest& request, ResponseParser& parser) {
    ClientResponse response;
    response.status = static_cast<int>(parser.get().result_int());
    for (const auto& field : parser.get()) {
      response.headers[absl::AsciiStrToLower(Text(field.name_string()))] = Text(field.value());
    }
    if (request.on_header && response.ok()) TUTTI_RETURN_IF_ERROR(request.on_header(response));
    std::string block(kBlockBytes, '\0');
    while (!parser.is_done()) {
      auto& body = parser.get().body();
      body.data = block.data();
      body.size = block.size();
      body.more = true;
      error_code code;
      beast::http::read_some(*socket_, buffer_, parser, code);
      if (code && code != beast::http::error::need_buffer) return StatusOf(code);
      const absl::string_view piece(block.data(), block.size() - body.size);
      if (piece.empty()) continue;
      if (request.on_chunk && response.ok()) {
        TUTTI_RETURN_IF_ERROR(request.on_chunk(piece));
      } else if (!is_service_ && !response.ok() &&
                 response.body.size() + piece.size() > kMaxForeignError) {
        return response;  // its status is what counts
      } else if (response.body.size() + piece.size() > kMaxBodyInMemory) {
        return absl::ResourceExhaustedError("the answer does not fit in memory");
      } else {
        response.body.append(piece.data(), piece.size());
      }
    }
    return response;
  }

  absl::Status StatusOf(const error_code& code) const {
    if (code == boost::asio::error::operation_aborted) return absl::CancelledError("cancelled");
    if (code == boost::asio::error::timed_out) {
      return absl::DeadlineExceededError(absl::StrCat(name_, " did not answer in time"));
    }
    const bool ended = code == beast::http::error::end_of_stream ||
                       code == beast::http::error::partial_message ||
                       code == boost::asio::error::eof;
    return absl::UnavailableError(absl::StrCat("the connection to ", name_, " broke off: ",
                                               !ended            ? code.message()
                                               : advice_.empty() ? "closed by the server"
                                                                 : "closed by the service"));
  }

  const bool is_service_;     // else any server
  const std::string name_;    // as errors call it
  const std::string advice_;  // how to start it; empty: it is not ours
  const std::string token_;
  const std::string certificate_;
  const absl::StatusOr<Authority> authority_;
  const base::UniqueFd cancel_event_;
  std::atomic<bool> cancelled_ = false;
  std::optional<Socket> socket_;
  beast::flat_buffer buffer_;
  bool answer_began_ = false;
};

Client::Client(std::string base_url, std::string token, std::string certificate)
    : impl_(std::make_unique<Impl>(std::move(base_url), std::move(token), std::move(certificate),
                                   Peer::kService)) {}
Client::Client(std::string base_url)
    : impl_(std::make_unique<Impl>(std::move(base_url), "", "", Peer::kAnyServer)) {}
Client::~Client() = default;

absl::StatusOr<ClientResponse> Client::Send(const ClientRequest& request) {
  return impl_->Send(request);
}

void Client::Cancel() { impl_->Cancel(); }
const std::string& Client::base_url() const { return impl_->base_url_; }

}  // namespace tutti::http

#include "platform/http/client.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
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
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/http/socket.h"
#include "platform/http/url.h"

namespace tutti::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;
using Parser = beast::http::response_parser<beast::http::buffer_body>;

constexpr size_t kBlock = 64 << 10;
constexpr uint64_t kMaxBodyInMemory = uint64_t{1} << 30;

std::string Text(beast::string_view text) { return std::string(text.data(), text.size()); }

bool MayBeRepeated(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

// A connected descriptor, or the errno of the attempt.
absl::StatusOr<base::UniqueFd> ConnectTo(const addrinfo& to, int cancel_fd,
                                         base::Deadline deadline) {
  base::UniqueFd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return base::ErrnoStatus("connect");
  pollfd waiting[2] = {{fd.get(), POLLOUT, 0}, {cancel_fd, POLLIN, 0}};
  int ready;
  do {
    ready = ::poll(waiting, 2, deadline.RemainingMillis());
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return absl::DeadlineExceededError("no answer to the connection in time");
  if (waiting[1].revents != 0) return absl::CancelledError("cancelled");
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return base::ErrnoStatus("connect", error);
  return fd;
}

}  // namespace

class Client::Impl {
 public:
  Impl(std::string base_url, std::string token)
      : base_url_(std::move(base_url)),
        token_(std::move(token)),
        authority_(ParseBaseUrl(base_url_)),
        cancel_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  absl::StatusOr<ClientResponse> Send(const ClientRequest& request) {
    if (cancelled_) return absl::CancelledError("cancelled");
    TUTTI_RETURN_IF_ERROR(authority_.status());
    const base::Deadline deadline = base::Deadline::After(request.timeout);
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
  // Closes the connection unless the exchange came to its regular end.
  absl::StatusOr<ClientResponse> SendOnce(const ClientRequest& request, base::Deadline deadline) {
    answer_began_ = false;
    absl::Cleanup close = [this] { socket_.reset(); };
    if (!socket_) TUTTI_RETURN_IF_ERROR(Connect(deadline));
    const bool unlimited = request.stall_timeout < absl::InfiniteDuration();
    socket_->Limit(unlimited ? std::nullopt : std::optional(deadline), request.stall_timeout);
    const absl::Status sent = SendRequest(request);
    if (!sent.ok() && !absl::IsUnavailable(sent)) return sent;
    // A server that refuses a body answers before it has read all: look for that answer even so.
    socket_->Limit(unlimited ? base::Deadline::After(request.timeout) : deadline,
                   absl::InfiniteDuration());
    Parser parser;
    parser.header_limit(256 << 10);
    parser.body_limit(std::numeric_limits<uint64_t>::max());
    buffer_.clear();
    if (request.method == "HEAD") parser.skip(true);
    error_code code;
    beast::http::read_header(*socket_, buffer_, parser, code);
    answer_began_ = parser.got_some();
    if (code) return sent.ok() ? StatusOf(code) : sent;
    if (unlimited) socket_->Limit(std::nullopt, request.stall_timeout);
    TUTTI_ASSIGN_OR_RETURN(ClientResponse response, ReadAnswer(request, parser));
    if (sent.ok() && parser.keep_alive()) std::move(close).Cancel();
    return response;
  }

  absl::Status Connect(base::Deadline deadline) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int failure = ::getaddrinfo(authority_->host.c_str(),
                                      std::to_string(authority_->port).c_str(), &hints, &found);
    if (failure != 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot find host ", authority_->host, ": ", ::gai_strerror(failure)));
    }
    const absl::Cleanup release = [found] { ::freeaddrinfo(found); };
    absl::Status last = absl::UnavailableError("no address");
    for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
      absl::StatusOr<base::UniqueFd> fd = ConnectTo(*to, cancel_event_.get(), deadline);
      if (fd.ok()) {
        socket_.emplace(*std::move(fd), cancel_event_.get());
        return absl::OkStatus();
      }
      last = fd.status();
      if (absl::IsCancelled(last)) return last;
    }
    return absl::UnavailableError(absl::StrCat("cannot reach the service at ", base_url_, " (",
                                               last.message(),
                                               "): is it running? start it with: tutti serve"));
  }

  absl::Status SendRequest(const ClientRequest& request) {
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
    error_code code;
    SendHeader(request, length, code);
    if (!code && file.valid()) return SendFile(file.get(), length, request.body_file);
    if (!code) boost::asio::write(*socket_, boost::asio::buffer(request.body), code);
    return code ? StatusOf(code) : absl::OkStatus();
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
    const bool has_body = request.method != "GET" && request.method != "HEAD";
    if (has_body) header.content_length(length);
    if (has_body && length > 0) {
      header.set(beast::http::field::content_type, request.content_type);
    }
    for (const auto& [name, value] : request.headers) header.set(name, value);
    beast::http::request_serializer<beast::http::empty_body> serializer(header);
    beast::http::write_header(*socket_, serializer, code);
  }

  absl::Status SendFile(int file, uint64_t left, const std::filesystem::path& name) {
    std::string block(kBlock * 4, '\0');  // read and send: sendfile would raise SIGPIPE
    while (left > 0) {
      const ssize_t n = ::read(file, block.data(), std::min<uint64_t>(left, block.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", name.string()));
      if (n == 0) {
        return absl::DataLossError(
            absl::StrCat(name.string(), " became shorter while it was sent"));
      }
      error_code code;
      boost::asio::write(*socket_, boost::asio::buffer(block.data(), static_cast<size_t>(n)), code);
      if (code) return StatusOf(code);
      left -= static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ClientResponse> ReadAnswer(const ClientRequest& request, Parser& parser) {
    ClientResponse response;
    response.status = static_cast<int>(parser.get().result_int());
    for (const auto& field : parser.get()) {
      response.headers[absl::AsciiStrToLower(Text(field.name_string()))] = Text(field.value());
    }
    std::string block(kBlock, '\0');
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
      return absl::DeadlineExceededError(
          absl::StrCat("the service at ", base_url_, " did not answer in time"));
    }
    const bool ended = code == beast::http::error::end_of_stream ||
                       code == beast::http::error::partial_message ||
                       code == boost::asio::error::eof;
    return absl::UnavailableError(
        absl::StrCat("the connection to the service at ", base_url_,
                     " broke off: ", ended ? "closed by the service" : code.message()));
  }

  const std::string token_;
  const absl::StatusOr<Authority> authority_;
  const base::UniqueFd cancel_event_;
  std::atomic<bool> cancelled_ = false;
  std::optional<Socket> socket_;
  beast::flat_buffer buffer_;
  bool answer_began_ = false;
};

Client::Client(std::string base_url, std::string token)
    : impl_(std::make_unique<Impl>(std::move(base_url), std::move(token))) {}
Client::~Client() = default;

absl::StatusOr<ClientResponse> Client::Send(const ClientRequest& request) {
  return impl_->Send(request);
}

void Client::Cancel() { impl_->Cancel(); }
const std::string& Client::base_url() const { return impl_->base_url_; }

absl::Status Client::Download(const std::string& target, const std::filesystem::path& file) {
  const std::filesystem::path temporary = file.string() + ".part";
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  absl::Cleanup remove = [&] { ::unlink(temporary.c_str()); };
  ClientRequest request;
  request.target = target;
  request.stall_timeout = absl::Seconds(60);
  request.on_chunk = [&](absl::string_view piece) {
    return base::WriteAll(fd.get(), piece, file.string());
  };
  TUTTI_ASSIGN_OR_RETURN(const ClientResponse response, Send(request));
  TUTTI_RETURN_IF_ERROR(ToStatus(response));
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    return base::ErrnoStatus(absl::StrCat("rename to ", file.string()));
  }
  std::move(remove).Cancel();
  return absl::OkStatus();
}

ChunkCallback ByLine(ChunkCallback on_line) {
  return [on_line = std::move(on_line), rest = std::string()](absl::string_view chunk) mutable {
    while (!chunk.empty()) {
      const size_t end = chunk.find('\n');
      if (end == absl::string_view::npos) {
        rest.append(chunk.data(), chunk.size());
        break;
      }
      rest.append(chunk.data(), end);
      const std::string line = std::move(rest);
      rest.clear();
      TUTTI_RETURN_IF_ERROR(on_line(line));
      chunk.remove_prefix(end + 1);
    }
    return absl::OkStatus();
  };
}

absl::Status ToStatus(const ClientResponse& response) {
  if (response.ok()) return absl::OkStatus();
  std::string message;
  std::string code;
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_object()) {
    message = json["error"].value("message", "");
    code = json["error"].value("code", "");
  }
  if (message.empty()) message = absl::StrCat("the service answered ", response.status);
  switch (response.status) {
    case 400:
      return absl::InvalidArgumentError(message);
    case 401:
      return absl::UnauthenticatedError(message);
    case 403:
      return absl::PermissionDeniedError(message);
    case 404:
      return absl::NotFoundError(message);
    case 409:
      return code == "already_exists" ? absl::AlreadyExistsError(message)
                                      : absl::FailedPreconditionError(message);
    case 410:
      return absl::AbortedError(message);
    case 413:
      return absl::OutOfRangeError(message);
    case 501:
      return absl::UnimplementedError(message);
    case 503:
      return absl::UnavailableError(message);
    case 408:
    case 504:
      return absl::DeadlineExceededError(message);
    case 507:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace tutti::http

#include "platform/http/server_connection.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/http/socket.h"
#include "platform/http/url.h"

namespace tutti::http {
namespace {

namespace beast = boost::beast;
using beast::http::error;
using boost::system::error_code;
using Parser = beast::http::request_parser<beast::http::buffer_body>;

constexpr size_t kBlock = 64 << 10;
// An unread body up to this size is skipped to keep the connection; with more it is closed.
constexpr uint64_t kSkippedBody = 256 << 10;

std::string Text(beast::string_view text) { return std::string(text.data(), text.size()); }

absl::Status StatusOf(const error_code& code) {
  if (code == error::body_limit) return absl::OutOfRangeError("the body is too large");
  if (code == boost::asio::error::timed_out) {
    return absl::DeadlineExceededError("the body stalled");
  }
  if (code == error::end_of_stream || code == error::partial_message ||
      code == boost::asio::error::eof) {
    return absl::CancelledError("the client closed the connection");
  }
  if (code.category() == make_error_code(error::bad_chunk).category()) {
    return absl::InvalidArgumentError(absl::StrCat("broken body: ", code.message()));
  }
  return absl::CancelledError(absl::StrCat("connection lost: ", code.message()));
}

// What a request whose header cannot be read is answered with; nullopt: just close.
std::optional<Response> AnswerToBrokenHeader(const error_code& code, bool began) {
  if (code == error::header_limit) {
    return ErrorResponse(431, "header_too_large", "the request's header is too large");
  }
  if (code == boost::asio::error::timed_out && began) {
    return ErrorResponse(408, "timeout", "the request's header did not come in time");
  }
  if (code == error::end_of_stream || code == error::partial_message ||
      code.category() != make_error_code(error::bad_method).category()) {
    return std::nullopt;
  }
  return ErrorResponse(400, "invalid_argument", absl::StrCat("not HTTP/1.1: ", code.message()));
}

absl::StatusOr<Request> RequestOf(const Parser& parser, const std::string& peer) {
  const auto& header = parser.get();
  Request request;
  request.method = Text(header.method_string());
  request.peer = peer;
  for (const auto& field : header) {
    std::string& value = request.headers[absl::AsciiStrToLower(Text(field.name_string()))];
    absl::StrAppend(&value, value.empty() ? "" : ", ", Text(field.value()));
  }
  if (header.version() >= 11 && request.headers.count("host") == 0) {
    return absl::InvalidArgumentError("the Host header is missing");
  }
  TUTTI_ASSIGN_OR_RETURN(Target target, ParseTarget(Text(header.target())));
  request.path = std::move(target.path);
  request.query = std::move(target.query);
  return request;
}

class OneConnection final : public Connection, public Writer {
 public:
  OneConnection(int fd, std::string peer, const ServerOptions& options, const Handler& handler,
                int stop_fd, const std::atomic<bool>& stopping)
      : socket_(base::UniqueFd(fd), stop_fd),
        peer_(std::move(peer)),
        options_(options),
        handler_(handler),
        stopping_(stopping),
        buffer_(options.max_header_bytes + kBlock) {}
  ~OneConnection() override { socket_.Release(); }

  void Serve() {
    while (keep_ && !stopping_) {
      if (!ServeOne()) break;
    }
    CloseGently();
  }

  absl::StatusOr<std::string> ReadBody(uint64_t max_bytes) override {
    std::string body;
    TUTTI_RETURN_IF_ERROR(ReadBodyTo(
        [&body](absl::string_view piece) {
          body.append(piece.data(), piece.size());
          return absl::OkStatus();
        },
        max_bytes));
    return body;
  }

  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t max_bytes) override {
    if (ContentLength() >= 0 && static_cast<uint64_t>(ContentLength()) > max_bytes) {
      return absl::OutOfRangeError(absl::StrCat("the body has ", ContentLength(),
                                                " bytes, at most ", max_bytes, " are taken"));
    }
    TUTTI_RETURN_IF_ERROR(SendContinue());
    std::string block(kBlock, '\0');
    uint64_t total = 0;
    while (!parser_->is_done()) {
      TUTTI_ASSIGN_OR_RETURN(const size_t n, ReadPiece(block));
      total += n;
      if (total > max_bytes) {
        return absl::OutOfRangeError(absl::StrCat("the body has more than ", max_bytes, " bytes"));
      }
      if (n > 0) TUTTI_RETURN_IF_ERROR(sink(absl::string_view(block.data(), n)));
    }
    return absl::OkStatus();
  }

  int64_t ContentLength() const override {
    if (parser_->chunked()) return -1;
    const auto length = parser_->content_length();
    return length ? static_cast<int64_t>(*length) : 0;
  }

  bool Closed() override { return stopping_ || socket_.PeerHasGone(); }

  absl::Status Write(absl::string_view bytes) override {
    if (bytes.empty()) return Closed() ? Gone() : absl::OkStatus();
    if (stopping_) return Gone();
    error_code code;
    const boost::asio::const_buffer piece(bytes.data(), bytes.size());
    if (chunked_) {
      boost::asio::write(socket_, beast::http::make_chunk(piece), code);
    } else {
      boost::asio::write(socket_, piece, code);
    }
    if (code) return Gone();
    return absl::OkStatus();
  }

 private:
  static absl::Status Gone() { return absl::CancelledError("the client has gone"); }

  // False when the connection is to be closed.
  bool ServeOne() {
    parser_.emplace();
    parser_->header_limit(options_.max_header_bytes);
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    if (!ReadHeader()) return false;
    head_ = parser_->get().method() == beast::http::verb::head;
    continue_due_ =
        absl::EqualsIgnoreCase(Text(parser_->get()[beast::http::field::expect]), "100-continue");
    keep_ = parser_->get().keep_alive();
    socket_.Limit(std::nullopt, options_.stall_timeout);
    const Response response = Answer();
    if (!SkipBody()) keep_ = false;
    if (stopping_) keep_ = false;
    return Send(response) && keep_;
  }

  bool ReadHeader() {
    socket_.HeedStop(true);
    if (buffer_.size() == 0) {
      socket_.Limit(std::nullopt, options_.idle_timeout);
      if (socket_.Await(POLLIN)) return false;
    }
    socket_.Limit(base::Deadline::After(options_.header_timeout), absl::InfiniteDuration());
    error_code code;
    beast::http::read_header(socket_, buffer_, *parser_, code);
    socket_.HeedStop(false);
    if (!code) return true;
    if (code == error::end_of_stream && !parser_->got_some()) return false;
    keep_ = false;
    head_ = false;
    socket_.Limit(base::Deadline::After(absl::Seconds(5)), absl::InfiniteDuration());
    if (const auto answer = AnswerToBrokenHeader(code, parser_->got_some() || buffer_.size() > 0)) {
      Send(*answer);
    }
    return false;
  }

  Response Answer() {
    absl::StatusOr<Request> request = RequestOf(*parser_, peer_);
    if (!request.ok()) return ErrorResponse(request.status());
    try {
      return handler_(*request, *this);
    } catch (const std::exception& e) {
      spdlog::error("{} {}: {}", request->method, request->path, e.what());
      return ErrorResponse(500, "internal", "the service failed; its log has the reason");
    }
  }

  absl::Status SendContinue() {
    if (!continue_due_) return absl::OkStatus();
    continue_due_ = false;
    static constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    error_code code;
    boost::asio::write(socket_, boost::asio::buffer(kContinue.data(), kContinue.size()), code);
    return code ? StatusOf(code) : absl::OkStatus();
  }

  // Up to a block of the body as soon as there is some; may be 0 bytes at a chunk's edge.
  absl::StatusOr<size_t> ReadPiece(std::string& block) {
    auto& body = parser_->get().body();
    body.data = block.data();
    body.size = block.size();
    body.more = true;
    error_code code;
    beast::http::read_some(socket_, buffer_, *parser_, code);
    if (code == error::need_buffer) code = {};
    if (code) {
      keep_ = false;
      return StatusOf(code);
    }
    return block.size() - body.size;
  }

  // False if what is left of the body makes the connection unfit for another request.
  bool SkipBody() {
    if (parser_->is_done()) return true;
    if (continue_due_ || !keep_ || ContentLength() > static_cast<int64_t>(kSkippedBody))
      return false;
    std::string block(kBlock, '\0');
    uint64_t total = 0;
    while (!parser_->is_done() && total <= kSkippedBody) {
      const auto n = ReadPiece(block);
      if (!n.ok()) return false;
      total += *n;
    }
    return parser_->is_done();
  }

  bool Send(const Response& response) {
    if (response.stream) return SendStream(response);
    if (!response.file.empty()) return SendFile(response);
    return SendHeader(response, response.body.size()) && (head_ || SendAll(response.body));
  }

  bool SendAll(absl::string_view bytes) {
    error_code code;
    boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size()), code);
    return !code;
  }

  // `length`: nullopt for a chunked body (HTTP/1.0: until the end of the connection).
  bool SendHeader(const Response& response, std::optional<uint64_t> length) {
    beast::http::response<beast::http::empty_body> header;
    header.result(static_cast<unsigned>(response.status));
    header.version(parser_->get().version() == 10 ? 10 : 11);
    header.set(beast::http::field::server, "tutti");
    if (!response.content_type.empty()) {
      header.set(beast::http::field::content_type, OneLine(response.content_type));
    }
    for (const auto& [name, value] : response.headers) header.insert(name, OneLine(value));
    chunked_ = !length && header.version() == 11;
    if (!length && !chunked_) keep_ = false;
    header.keep_alive(keep_);
    if (length && response.status != 204 && response.status != 304) header.content_length(*length);
    if (chunked_) header.chunked(true);
    beast::http::response_serializer<beast::http::empty_body> serializer(header);
    error_code code;
    beast::http::write_header(socket_, serializer, code);
    return !code;
  }

  // A value with a line break in it would start a header of its own.
  static std::string OneLine(std::string value) {
    for (char& c : value) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
    }
    return value;
  }

  bool SendFile(const Response& response) {
    const auto file = base::Open(response.file, O_RDONLY);
    struct stat info;
    if (!file.ok() || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return Send(file.ok() ? ErrorResponse(404, "not_found", "not a file")
                            : ErrorResponse(file.status()));
    }
    uint64_t left = static_cast<uint64_t>(info.st_size);
    if (!SendHeader(response, left)) return false;
    error_code code;
    while (left > 0 && !head_) {
      const size_t n = socket_.WriteFrom(file->get(), std::min<uint64_t>(left, 1 << 20), code);
      if (code || n == 0) return false;  // n == 0: the file was cut, the length cannot be kept
      left -= n;
    }
    return true;
  }

  bool SendStream(const Response& response) {
    if (!SendHeader(response, std::nullopt)) return false;
    if (head_) return true;
    try {
      if (!response.stream(*this).ok()) return false;
    } catch (const std::exception& e) {
      spdlog::error("streamed answer: {}", e.what());
      return false;
    }
    return !chunked_ || SendAll("0\r\n\r\n");
  }

  // Closing with unread bytes makes the kernel reset the connection, which can take the answer from
  // the client before it has read it: so say "no more", then read on for a moment.
  void CloseGently() {
    if (::shutdown(socket_.fd(), SHUT_WR) != 0 || !parser_ || stopping_) return;
    socket_.HeedStop(true);
    socket_.Limit(base::Deadline::After(absl::Seconds(2)), absl::InfiniteDuration());
    std::string block(kBlock, '\0');
    error_code code;
    for (uint64_t total = 0; !code && total < (uint64_t{64} << 20);) {
      total += socket_.Read(block.data(), block.size(), code);
    }
  }

  Socket socket_;
  const std::string peer_;
  const ServerOptions& options_;
  const Handler& handler_;
  const std::atomic<bool>& stopping_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  bool keep_ = true;
  bool head_ = false;
  bool chunked_ = false;
  bool continue_due_ = false;  // the client waits for "100 Continue" before it sends the body
};

}  // namespace

void ServeConnection(int fd, const std::string& peer, const ServerOptions& options,
                     const Handler& handler, int stop_fd, const std::atomic<bool>& stopping) {
  try {
    OneConnection(fd, peer, options, handler, stop_fd, stopping).Serve();
  } catch (const std::exception& e) {
    spdlog::error("connection from {}: {}", peer, e.what());
  }
}

}  // namespace tutti::http

#include "http/server/request_reader.h"

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "http/beast.h"
#include "http/socket_name.h"
#include "http/url.h"

namespace tutti::http {
namespace {

using beast::http::error;
using RequestParser = beast::http::request_parser<beast::http::buffer_body>;

constexpr int64_t kSkippedBody = 256 << 10;

bool IsOfProtocol(const error_code& code) {
  return code.category() == make_error_code(error::bad_method).category();
}

absl::Status StatusOf(const error_code& code) {
  if (code == boost::asio::error::timed_out) {
    return absl::DeadlineExceededError("the body stalled");
  }
  if (code == error::end_of_stream || code == error::partial_message ||
      code == boost::asio::error::eof) {
    return absl::CancelledError("the client closed the connection");
  }
  if (IsOfProtocol(code)) {
    return absl::InvalidArgumentError(absl::StrCat("broken body: ", code.message()));
  }
  return absl::CancelledError(absl::StrCat("connection lost: ", code.message()));
}

std::optional<Response> AnswerToBrokenHeader(const error_code& code, bool began) {
  if (code == error::header_limit) {
    return ErrorResponse(431, "header_too_large", "the request's header is too large");
  }
  if (code == boost::asio::error::would_block && began) {
    return ErrorResponse(408, "timeout", "the request's header did not come in time");
  }
  if (code == error::end_of_stream || code == error::partial_message || !IsOfProtocol(code)) {
    return std::nullopt;
  }
  return ErrorResponse(400, "invalid_argument", absl::StrCat("not HTTP/1.1: ", code.message()));
}

absl::StatusOr<Request> RequestOf(const RequestParser& parser, const std::string& peer,
                                  const std::string& local) {
  const auto& header = parser.get();
  Request request;
  request.method = Text(header.method_string());
  request.peer = peer;
  request.local = local;
  for (const auto& field : header) {
    std::string& value = request.headers[absl::AsciiStrToLower(Text(field.name_string()))];
    absl::StrAppend(&value, value.empty() ? "" : ", ", Text(field.value()));
  }
  if (header.version() >= 11 && request.headers.count("host") == 0) {
    return absl::InvalidArgumentError("the Host header is missing");
  }
  request.target = Text(header.target());
  TUTTI_ASSIGN_OR_RETURN(Target target, ParseTarget(request.target));
  request.path = std::move(target.path);
  request.query = std::move(target.query);
  return request;
}

}  // namespace

struct RequestReader::State {
  explicit State(size_t most) : buffer(most) {}
  beast::flat_buffer buffer;
  std::optional<RequestParser> parser;
  std::string block;                // what is read of a body that is not prefetched
  std::optional<std::string> body;  // the whole of it, as far as it was prefetched
  int64_t skipped = 0;
  bool continue_due = false;  // the client waits for "100 Continue" before it sends the body
  bool broken = false;
  bool stalled = false;  // of the present request's body
};

RequestReader::RequestReader(Socket* socket, const ServerOptions& options, std::string peer)
    : socket_(socket),
      options_(options),
      peer_(std::move(peer)),
      local_(TextOf(OwnName(socket->fd()))),
      state_(std::make_unique<State>(options.max_header_bytes + kBlockBytes)) {}

RequestReader::~RequestReader() = default;

bool RequestReader::HasData() const { return state_->buffer.size() > 0 || socket_->HasData(); }

void RequestReader::Begin() {
  state_->parser.emplace();
  state_->parser->header_limit(options_.max_header_bytes);
  state_->parser->body_limit(std::numeric_limits<uint64_t>::max());
  state_->body.reset();
  state_->skipped = 0;
  state_->stalled = false;
  state_->block = std::string();
  if (state_->buffer.size() == 0) state_->buffer.shrink_to_fit();
}

Progress RequestReader::ReadHeader(bool late, std::optional<IncomingRequest>& incoming,
                                   std::optional<Response>& refusal) {
  RequestParser& parser = *state_->parser;
  error_code code;
  beast::http::read_header(*socket_, state_->buffer, parser, code);
  if (code == boost::asio::error::would_block && !late) return Progress::kMore;
  if (code) {
    refusal = AnswerToBrokenHeader(code, parser.got_some() || state_->buffer.size() > 0);
    return Progress::kBroken;
  }
  state_->continue_due =
      absl::EqualsIgnoreCase(Text(parser.get()[beast::http::field::expect]), "100-continue");
  incoming =
      IncomingRequest{RequestOf(parser, peer_, local_),
                      {parser.get().keep_alive(), parser.get().method() == beast::http::verb::head,
                       parser.get().version() == 10}};
  return Progress::kDone;
}

bool RequestReader::MayPrefetch() const {
  return !state_->continue_due && ContentLength() > 0 &&
         ContentLength() <= options_.max_prefetched_body;
}

// What many connections hold at a time has the size of their bodies, and nothing else is allocated
// meanwhile, whose place in the heap small things would take.
Progress RequestReader::Prefetch(bool& moved) {
  const auto length = static_cast<size_t>(ContentLength());
  if (!state_->body) state_->body.emplace().reserve(length);
  std::string& body = *state_->body;
  while (!state_->parser->is_done()) {
    error_code code;
    const size_t before = body.size();
    body.resize(std::min(length, before + kBlockBytes));
    const size_t n = ReadPiece(body.data() + before, body.size() - before, code);
    body.resize(before + n);
    moved |= n > 0;
    if (code == boost::asio::error::would_block) return Progress::kMore;
    if (code) return Progress::kBroken;
  }
  return Progress::kDone;
}

void RequestReader::DropPrefetched() { state_->body = std::string(); }

int64_t RequestReader::ContentLength() const {
  if (state_->parser->chunked()) return -1;
  const auto length = state_->parser->content_length();
  return length ? static_cast<int64_t>(*length) : 0;
}

absl::Status RequestReader::ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                                       uint64_t max_bytes) {
  if (ContentLength() >= 0 && static_cast<uint64_t>(ContentLength()) > max_bytes) {
    return absl::OutOfRangeError(absl::StrCat("the body has ", ContentLength(), " bytes, at most ",
                                              max_bytes, " are taken"));
  }
  if (state_->body) return state_->body->empty() ? absl::OkStatus() : sink(*state_->body);
  TUTTI_RETURN_IF_ERROR(SendContinue());
  uint64_t total = 0;
  while (!state_->parser->is_done()) {
    error_code code;
    const size_t n = ReadPiece(code);
    if (code) {
      state_->stalled = code == boost::asio::error::timed_out;
      return StatusOf(code);
    }
    total += n;
    if (total > max_bytes) {
      return absl::OutOfRangeError(absl::StrCat("the body has more than ", max_bytes, " bytes"));
    }
    if (n > 0) TUTTI_RETURN_IF_ERROR(sink(absl::string_view(state_->block.data(), n)));
  }
  return absl::OkStatus();
}

absl::Status RequestReader::SendContinue() {
  if (!state_->continue_due) return absl::OkStatus();
  state_->continue_due = false;
  static constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  error_code code;
  boost::asio::write(*socket_, boost::asio::buffer(kContinue.data(), kContinue.size()), code);
  return code ? StatusOf(code) : absl::OkStatus();
}

size_t RequestReader::ReadPiece(error_code& code) {
  state_->block.resize(kBlockBytes);
  return ReadPiece(state_->block.data(), state_->block.size(), code);
}

size_t RequestReader::ReadPiece(char* into, size_t room, error_code& code) {
  auto& body = state_->parser->get().body();
  body.data = into;
  body.size = room;
  body.more = true;
  beast::http::read_some(*socket_, state_->buffer, *state_->parser, code);
  if (code == error::need_buffer) code = {};
  state_->broken |= code && code != boost::asio::error::would_block;
  return room - body.size;
}

void RequestReader::GiveUpBody() { state_->broken = true; }

bool RequestReader::Stalled() const { return state_->stalled; }

bool RequestReader::MaySkip() const {
  return !state_->broken &&
         (state_->parser->is_done() || (!state_->continue_due && ContentLength() <= kSkippedBody));
}

Progress RequestReader::Skip() {
  while (!state_->parser->is_done()) {
    error_code code;
    state_->skipped += static_cast<int64_t>(ReadPiece(code));
    if (code == boost::asio::error::would_block) return Progress::kMore;
    if (code || state_->skipped > kSkippedBody) return Progress::kBroken;
  }
  return Progress::kDone;
}

}  // namespace tutti::http

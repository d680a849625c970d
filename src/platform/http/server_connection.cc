#include "platform/http/server_connection.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/http/request_reader.h"
#include "platform/http/response_writer.h"
#include "platform/http/socket.h"

namespace tutti::http {
namespace {

class ConnectionThread final : public Connection {
 public:
  ConnectionThread(int fd, const std::string& peer, const ServerOptions& options,
                   const Handler& handler, OpenConnections& open, int stop_fd,
                   const std::atomic<bool>& stopping)
      : fd_(fd),
        socket_(base::UniqueFd(fd), stop_fd),
        options_(options),
        handler_(handler),
        open_(open),
        stopping_(stopping),
        reader_(&socket_, options, peer),
        writer_(&socket_, &stopping) {}
  ~ConnectionThread() override { socket_.Release(); }

  void Serve() {
    if (!Begin()) return;
    while (!stopping_ && ServeOne()) {
    }
    CloseGently();
  }

  absl::StatusOr<std::string> ReadBody(uint64_t max_bytes) override {
    std::string body;
    const auto append = [&body](absl::string_view piece) {
      body.append(piece.data(), piece.size());
      return absl::OkStatus();
    };
    TUTTI_RETURN_IF_ERROR(reader_.ReadBodyTo(append, max_bytes));
    return body;
  }
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t max_bytes) override {
    return reader_.ReadBodyTo(sink, max_bytes);
  }
  int64_t ContentLength() const override { return reader_.ContentLength(); }
  bool Closed() override { return writer_.Closed(); }
  void Trust() override {
    trusted_ = true;
    open_.Trust(fd_);
  }

 private:
  bool Begin() {
    if (options_.identity == nullptr) return true;
    socket_.Limit(base::Deadline::After(options_.header_timeout), absl::InfiniteDuration());
    const absl::Status begun = socket_.AcceptTls(*options_.identity);
    if (absl::IsInvalidArgument(begun)) {
      got_something_ = true;
      writer_.Send(ErrorResponse(400, "tls_needed", "this service speaks TLS: use https://"), {});
      CloseGently();
    }
    return begun.ok();
  }

  // False when the connection is to be closed. A stop ends the wait for a request and its header,
  // not the work on one.
  bool ServeOne() {
    socket_.SetStoppable(true);
    std::optional<Response> refusal;
    std::optional<Incoming> incoming = reader_.ReadHeader(refusal);
    socket_.SetStoppable(false);
    got_something_ |= incoming || refusal;
    if (!incoming) {
      socket_.Limit(base::Deadline::After(absl::Seconds(5)), absl::InfiniteDuration());
      if (refusal) writer_.Send(*refusal, {});
      return false;
    }
    open_.Answers(fd_);
    socket_.Limit(std::nullopt, options_.stall_timeout);
    Response response = incoming->request.ok() ? Answer(*incoming->request)
                                               : ErrorResponse(incoming->request.status());
    if (reader_.Stalled()) {
      response = ErrorResponse(408, "timeout", "the request's body did not come in time");
    }
    if (!trusted_) open_.Waits(fd_);  // a stranger does not hold his place by a body
    if (!PassOverBody() || stopping_) incoming->form.keep_alive = false;
    const bool goes_on = writer_.Send(response, incoming->form);
    open_.Waits(fd_);
    return goes_on;
  }

  bool PassOverBody() {
    socket_.Limit(base::Deadline::After(options_.header_timeout), options_.stall_timeout);
    const bool passed = reader_.SkipBody();
    socket_.Limit(std::nullopt, options_.stall_timeout);
    return passed;
  }

  Response Answer(const Request& request) {
    try {
      return handler_(request, *this);
    } catch (const std::exception& e) {
      spdlog::error("{} {}: {}", request.method, request.path, e.what());
      return ErrorResponse(500, "internal", "the service failed; its log has the reason");
    }
  }

  // Closing with unread bytes makes the kernel reset the connection, which can take the answer from
  // the client before it has read it: so say "no more", then read on for a moment.
  void CloseGently() {
    socket_.EndWriting();
    if (!got_something_ || stopping_) return;
    socket_.SetStoppable(true);
    socket_.Limit(base::Deadline::After(absl::Seconds(2)), absl::InfiniteDuration());
    std::string block(64 << 10, '\0');
    boost::system::error_code code;
    for (uint64_t total = 0; !code && total < (uint64_t{64} << 20);) {
      total += socket_.Read(block.data(), block.size(), code);
    }
  }

  const int fd_;
  Socket socket_;
  const ServerOptions& options_;
  const Handler& handler_;
  OpenConnections& open_;
  const std::atomic<bool>& stopping_;
  RequestReader reader_;
  ResponseWriter writer_;
  bool got_something_ = false;
  bool trusted_ = false;
};

}  // namespace

void ServeConnection(int fd, const std::string& peer, const ServerOptions& options,
                     const Handler& handler, OpenConnections& open, int stop_fd,
                     const std::atomic<bool>& stopping) {
  try {
    ConnectionThread(fd, peer, options, handler, open, stop_fd, stopping).Serve();
  } catch (const std::exception& e) {
    spdlog::error("connection from {}: {}", peer, e.what());
  }
}

}  // namespace tutti::http

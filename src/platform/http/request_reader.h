// Reads the requests of one connection, one after the other: the header at once, the body when it
// is asked for. Internal to this room; Beast stays in the source file. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/http/message.h"
#include "platform/http/server.h"
#include "platform/http/socket.h"

namespace tutti::http {

// How the answer to a request must look.
struct AnswerForm {
  bool keep_alive = false;   // the connection takes another request after it
  bool only_header = false;  // HEAD
  bool http_1_0 = false;     // knows no chunks
};

struct Incoming {
  absl::StatusOr<Request> request;
  AnswerForm form;
};

class RequestReader {
 public:
  // `socket` and `options` outlive the object.
  RequestReader(Socket* socket, const ServerOptions& options, std::string peer);
  ~RequestReader();

  // The next request; its status is the fault if its target or headers make no sense. When not even
  // a header came, `refusal` is set to what is to be answered, if anything is, and nullopt
  // returned.
  std::optional<Incoming> ReadHeader(std::optional<Response>& refusal);

  // See Connection.
  int64_t ContentLength() const;
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t max_bytes);
  // Whether the body did not come in time.
  bool Stalled() const;
  // Passes over what was not read of a small body. False if the connection is unfit for another
  // request.
  bool SkipBody();

 private:
  struct State;
  absl::Status SendContinue();
  absl::StatusOr<size_t> ReadPiece(std::string& block);

  Socket* const socket_;
  const ServerOptions& options_;
  const std::string peer_;
  const std::unique_ptr<State> state_;
  bool began_ = false;  // something has come
};

}  // namespace tutti::http

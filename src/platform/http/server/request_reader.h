// Reads the requests of one connection, one after the other: the header first, the body when it is
// asked for. What says Progress does not wait: it goes on where it was when it is called again.
// Internal to this room; Beast stays in the source file. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/http/message.h"
#include "platform/http/server/server.h"
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

enum class Progress { kMore, kDone, kBroken };  // kMore: once the socket has what it wants

class RequestReader {
 public:
  // `socket`, which does not wait but for ReadBodyTo, and `options` outlive the object.
  RequestReader(Socket* socket, const ServerOptions& options, std::string peer);
  ~RequestReader();

  // Returns whether something of the next request has come, or the end.
  bool HasData() const;
  // Begins the next request. Keeps no memory for it until it comes.
  void Begin();
  // Reads on; kDone: `incoming` is set. Its status is the fault if its target or headers make no
  // sense. When not even a header came in time (`late`: there is no more), `refusal` is set to what
  // is to be answered, if anything is.
  Progress ReadHeader(bool late, std::optional<Incoming>& incoming,
                      std::optional<Response>& refusal);

  // Returns whether the body is one that Prefetch reads: not empty, and small enough to be kept.
  bool MayPrefetch() const;
  bool HasBody() const { return ContentLength() != 0; }
  // Reads the whole body for ReadBodyTo. `moved`: some of it has come.
  Progress Prefetch(bool& moved);
  // Drops the memory of what Prefetch has read.
  void DropPrefetched();

  // See Connection.
  int64_t ContentLength() const;
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t max_bytes);
  // Leaves the rest of the body, which is not waited for.
  void GiveUpBody();
  // Returns whether the body did not come in time.
  bool Stalled() const;

  // Returns whether what was not read of the body is so little that Skip may pass over it.
  bool MaySkip() const;
  // Reads and drops the rest; kBroken: the connection is unfit for another request.
  Progress Skip();

 private:
  struct State;
  absl::Status SendContinue();
  // Reads up to a block of the body as soon as there is some; may be 0 bytes at a chunk's edge.
  size_t ReadPiece(boost::system::error_code& code);

  Socket* const socket_;
  const ServerOptions& options_;
  const std::string peer_;
  const std::unique_ptr<State> state_;
};

}  // namespace tutti::http

// RequestReader reads the requests of one connection, one after the other: the header first, the
// body when it is asked for. A function that returns Progress does not wait: called again, it goes
// on where it stopped. Internal to this room; Beast stays in the source file. Used by one thread at
// a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "http/message.h"
#include "http/server/server.h"
#include "http/socket.h"

namespace tutti::http {

// AnswerForm is how the answer to a request must look.
struct AnswerForm {
  bool keep_alive = false;   // the connection takes another request after it
  bool only_header = false;  // HEAD
  bool http_1_0 = false;     // knows no chunks
};

// IncomingRequest is a request whose header has been read, or why its header makes no sense.
struct IncomingRequest {
  absl::StatusOr<Request> request;
  AnswerForm form;
};

// After kMore the function is to be called again once the socket has what Socket::Wanted() says.
enum class Progress { kMore, kDone, kBroken };

class RequestReader {
 public:
  // `socket` and `options` must outlive the object. The socket must wait only in ReadBodyTo.
  RequestReader(Socket* socket, const ServerOptions& options, std::string peer);
  ~RequestReader();

  // Returns whether something of the next request, or the end of the connection, has arrived.
  bool HasData() const;
  // Begins the next request, for which no memory is allocated until it arrives.
  void Begin();
  // Reads on. After kDone `incoming` is set; its status is an error if the target or the headers
  // make no sense. With `late` there is no time left for more of the header. After kBroken
  // `refusal` is the answer, if there is to be one.
  Progress ReadHeader(bool late, std::optional<IncomingRequest>& incoming,
                      std::optional<Response>& refusal);

  // Returns whether Prefetch may read the body: it is not empty, and small enough to be kept.
  bool MayPrefetch() const;
  bool HasBody() const { return ContentLength() != 0; }
  // Reads the whole body for ReadBodyTo. Sets `moved` if some of it has arrived.
  Progress Prefetch(bool& moved);
  // Drops the memory of what Prefetch has read.
  void DropPrefetched();

  // These are as in Connection.
  int64_t ContentLength() const;
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t max_bytes);
  // Gives the rest of the body up: nobody waits for it any more.
  void GiveUpBody();
  // Returns whether the body did not arrive in time.
  bool Stalled() const;

  // Returns whether so little of the body is left unread that Skip may drop it.
  bool MaySkip() const;
  // Reads and drops the rest. After kBroken the connection can take no other request.
  Progress Skip();

 private:
  struct State;
  absl::Status SendContinue();
  // Reads up to a block of the body as soon as some has arrived; returns its bytes, which may be 0
  // at the edge of a chunk.
  size_t ReadPiece(boost::system::error_code& code);
  size_t ReadPiece(char* into, size_t room, boost::system::error_code& code);

  Socket* const socket_;
  const ServerOptions& options_;
  const std::string peer_, local_;
  const std::unique_ptr<State> state_;
};

}  // namespace tutti::http

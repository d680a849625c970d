// ServerConnection serves one connection, from its first request to its last, as a state machine. A
// turn runs until the connection has to wait, and returns what it needs to go on. Only a handler,
// and the reading of a large body for it, may block the thread that runs the turn. Internal to this
// room.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "http/server/connection_poller.h"
#include "http/server/handler_pool.h"
#include "http/server/open_connections.h"
#include "http/server/prefetch_budget.h"
#include "http/server/request_reader.h"
#include "http/server/response_writer.h"
#include "http/server/server.h"
#include "http/socket.h"

namespace tutti::http {

// Need is what a connection needs before its next turn:
//   kWaiting  something that it waits for has happened
//   kLane     a thread of another lane
//   kRoom     likewise; but after `patience`, or at once if another connection has waited there for
//             that long, it gets a turn in the lane in which it was
//   kClose    nothing: it is over
struct Need {
  enum class Kind { kWaiting, kLane, kRoom, kClose };
  Kind kind = Kind::kClose;
  Waiting waiting{.until = base::Deadline::After(absl::ZeroDuration())};  // kWaiting
  Place place;                                                            // a turn there
  absl::Duration patience;                                                // kRoom
};

// ServerContext is what the connections of a server share. It outlives them.
struct ServerContext {
  const ServerOptions& options;
  const Handler& handler;
  OpenConnections& open;
  PrefetchBudget& prefetch;
  const std::atomic<bool>& stopping;
};

// Used by one thread at a time.
class ServerConnection final : public Connection {
 public:
  // The caller closes `fd`, which was added to `server.open`. `wake` is what Waker returns.
  ServerConnection(int fd, const std::string& peer, const ServerContext& server,
                   std::function<void()> wake);
  ~ServerConnection() override;

  // Runs a turn on a thread of `lane`. Called too early, it returns the same need again. Does not
  // throw.
  Need Turn(Lane lane);
  int fd() const { return fd_; }
  // Returns where the connection goes on after it has waited for that lane. Must not be called
  // during a turn.
  Place PlaceIn(Lane lane) const {
    return lane == LaneOfFiles() ? Place{lane, group_} : Place{lane};
  }

  absl::StatusOr<std::string> ReadBody(uint64_t max_bytes) override;
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t max_bytes) override;
  int64_t ContentLength() const override { return reader_.ContentLength(); }
  bool Closed() override { return server_.stopping || socket_.PeerHasGone(); }
  std::function<void()> Waker() override { return wake_; }

 private:
  // A step of a turn returns what is needed before `step_` can run, if anything is.
  using Step = std::optional<Need> (ServerConnection::*)();
  std::optional<Need> Then(Step step);
  // Closes without telling the client anything; logs the reason at level debug.
  Need Close(absl::string_view why) const;
  Need WaitForSocket(short events, Lane lane) const;
  Need WaitForNews(base::Deadline until, Lane lane) const;
  std::optional<Need> NeedLane(Lane lane) const;
  // Does the same as NeedLane for lanes whose threads may be blocked for long. Sets `refused`, and
  // returns nothing, if no thread was free in time.
  std::optional<Need> NeedRoom(Lane lane, absl::Duration patience, bool& refused);
  // Returns whether the handler reads the body as it arrives.
  bool IsBodyLarge() const { return reader_.HasBody() && prefetched_ == 0; }
  Lane LaneOf() const;
  Lane LaneOfHandler() const;
  Lane LaneOfUnwanted() const;  // for reading a body only to skip it
  Lane LaneOfFiles() const { return role_ == Role::kNode ? Lane::kNodeOut : Lane::kUserOut; }
  bool IsStranger() const { return role_ == Role::kStranger; }

  std::optional<Need> BeginTls();
  std::optional<Need> BeginIdle();
  std::optional<Need> Idle();
  std::optional<Need> ReadHeader();
  std::optional<Need> Admit();
  std::optional<Need> ReadSmallBody();
  std::optional<Need> Handle();
  std::optional<Need> PollLater();
  std::optional<Need> Answer(Response response);
  std::optional<Need> BeginAnswer();
  std::optional<Need> Send();
  std::optional<Need> NextPart();
  std::optional<Need> NextPiece();
  std::optional<Need> NextOfFile();
  std::optional<Need> EndAnswer();
  std::optional<Need> SkipBody();
  std::optional<Need> BeginLingering();
  std::optional<Need> Linger();
  Response CallHandler();
  void ReportAnswer() const;
  bool MayPrefetch();
  void DropBody();

  const int fd_;
  const std::string peer_;
  const ServerContext server_;
  const std::function<void()> wake_;
  Socket socket_;
  RequestReader reader_;
  ResponseWriter writer_;
  Step step_;
  Lane lane_ = Lane::kProtocol;
  base::Deadline until_;  // limits the present step
  Role role_ = Role::kStranger;
  Pace pace_ = Pace::kQuick;
  std::string group_;
  int kind_ = -1;               // Admission::kind
  absl::Duration header_time_;  // when the request's header had arrived, by base::SteadyNow
  bool asked_for_room_ = false;
  bool served_ = false;         // a request before this one was answered
  bool got_something_ = false;  // some request, or a part of one, has arrived
  std::optional<IncomingRequest> incoming_;
  Response response_;
  uint64_t lingered_ = 0;
  int64_t prefetched_ = 0;  // bytes that were taken from server_.prefetch
};

}  // namespace tutti::http

// ServerConnection serves one connection, from its first request to its last, as a state machine: a
// turn goes on until there is something to wait for, and says what. Only a handler, and the reading
// of a large body for it, may hold up the thread that gives the turn. Internal to this room.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "platform/http/server/connection_poller.h"
#include "platform/http/server/handler_pool.h"
#include "platform/http/server/open_connections.h"
#include "platform/http/server/prefetch_budget.h"
#include "platform/http/server/request_reader.h"
#include "platform/http/server/response_writer.h"
#include "platform/http/server/server.h"
#include "platform/http/socket.h"

namespace tutti::http {

// What a connection needs before its next turn. kRoom: as kLane, but after `patience`, or at once
// if another has waited there for that long, it gets a turn where it was.
struct Need {
  enum class Kind { kWaiting, kLane, kRoom, kClose };
  Kind kind = Kind::kClose;
  Waiting waiting{.until = base::Deadline::After(absl::ZeroDuration())};  // kWaiting
  Place place;                                                            // a turn there
  absl::Duration patience;                                                // kRoom
};

// What the connections of a server share. Outlives them.
struct Surroundings {
  const ServerOptions& options;
  const Handler& handler;
  OpenConnections& open;
  PrefetchBudget& prefetch;
  const std::atomic<bool>& stopping;
};

// Used by one thread at a time.
class ServerConnection final : public Connection {
 public:
  // `fd` stays the caller's to close, and is one of `with.open`. `wake` is its Waker.
  ServerConnection(int fd, const std::string& peer, const Surroundings& with,
                   std::function<void()> wake);
  ~ServerConnection() override;

  // May be given too early: then it needs the same again. Does not throw.
  Need Turn(Lane lane);
  int fd() const { return fd_; }
  // Returns where it goes on after a wait for that lane. Not during a turn.
  Place PlaceIn(Lane lane) const {
    return lane == LaneOfFiles() ? Place{lane, group_} : Place{lane};
  }

  absl::StatusOr<std::string> ReadBody(uint64_t max_bytes) override;
  absl::Status ReadBodyTo(const std::function<absl::Status(absl::string_view)>& sink,
                          uint64_t max_bytes) override;
  int64_t ContentLength() const override { return reader_.ContentLength(); }
  bool Closed() override { return with_.stopping || socket_.PeerHasGone(); }
  std::function<void()> Waker() override { return wake_; }

 private:
  // A step of a turn: what is needed to go on with `step_`, or nothing.
  using Step = std::optional<Need> (ServerConnection::*)();
  std::optional<Need> Then(Step step);
  // Closes without another word to the client; says why in the log, at the level of debug.
  Need Close(absl::string_view why) const;
  Need WaitForSocket(short events, Lane lane) const;
  Need WaitForNews(base::Deadline until, Lane lane) const;
  std::optional<Need> NeedLane(Lane lane) const;
  // Does the same as NeedLane for lanes whose threads may be held for long. Null with `refused`:
  // there was no room in time.
  std::optional<Need> NeedRoom(Lane lane, absl::Duration patience, bool& refused);
  // Returns whether the handler reads it as it comes.
  bool IsBodyLarge() const { return reader_.HasBody() && prefetched_ == 0; }
  Lane LaneOf() const;
  Lane LaneOfHandler() const;
  Lane LaneOfUnwanted() const;  // what is read of it to pass over it
  Lane LaneOfFiles() const { return party_ == Party::kNode ? Lane::kNodeOut : Lane::kUserOut; }
  bool IsStranger() const { return party_ == Party::kStranger; }

  std::optional<Need> BeginTls();
  std::optional<Need> BeginIdle();
  std::optional<Need> Idle();
  std::optional<Need> ReadHeader();
  std::optional<Need> Admit();
  std::optional<Need> ReadSmallBody();
  std::optional<Need> Handle();
  std::optional<Need> LookLater();
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
  void TellAnswered() const;
  bool MayPrefetch();
  void DropBody();

  const int fd_;
  const std::string peer_;
  const Surroundings with_;
  const std::function<void()> wake_;
  Socket socket_;
  RequestReader reader_;
  ResponseWriter writer_;
  Step step_;
  Lane lane_ = Lane::kProtocol;
  base::Deadline until_;  // of the present step
  Party party_ = Party::kStranger;
  Pace pace_ = Pace::kQuick;
  std::string group_;
  int kind_ = -1;        // of the request, for ServerOptions::answered
  absl::Duration came_;  // its header; SteadyNow
  bool asked_for_room_ = false;
  bool served_ = false;         // a request before this one
  bool got_something_ = false;  // of any request
  std::optional<Incoming> incoming_;
  Response response_;
  uint64_t lingered_ = 0;
  int64_t prefetched_ = 0;  // bytes of with_.prefetch
};

}  // namespace tutti::http

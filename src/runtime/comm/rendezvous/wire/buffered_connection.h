// BufferedConnection is a connection of which nobody waits: it keeps what has come but is no whole
// message yet, and what could not be sent yet. Thread-compatible.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/wire/control_message.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

class BufferedConnection {
 public:
  BufferedConnection() = default;
  explicit BufferedConnection(base::UniqueFd fd) : fd_(std::move(fd)) {}

  // How the other side went away: kInOrder when everything that it had said has come before, which
  // a reset connection does not promise.
  enum class End { kOpen, kInOrder, kReset };

  // Takes in what has promise.
  End Read();
  // Returns the next whole message; NotFound if there is none yet; InvalidArgument if it is none.
  absl::StatusOr<Message> Next(size_t longest);

  void Say(const Message& message) { unsent_ += Frame(message); }
  // Sends what there is room for; all of it.
  void Push();
  absl::Status Flush(const Patience& patience);

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  void Close() { fd_.reset(); }
  base::UniqueFd Release() { return std::move(fd_); }
  // Returns what to poll for.
  short events() const;
  size_t unsent() const { return unsent_.size(); }
  // Returns whether all that was said lies at the other side, though perhaps unread: of a
  // connection within a host no end, of whatever kind, can take it back.
  bool IsDelivered() const;

 private:
  base::UniqueFd fd_;
  std::string incoming_;
  std::string unsent_;
};

}  // namespace tutti::comm

// RejoinListener is where a rank of an elastic group is found while the group runs: a listener and
// a thread that answers, whatever the caller is doing.
//
// Who comes proves that it knows the job's token and says one thing. A member of the generation
// that re-forms (Promise) and a newcomer (JoinRequest) are kept, and hear a heartbeat, until this
// rank's Reform receives them; a member whose generation was followed by another hears by which
// (Decided), so that no rank stays in doubt as long as one lives that knows; a newcomer that comes
// to another rank than the one that receives newcomers is sent there (Redirect).
//
// Thread-safe. One listener serves a rank through all generations: its port stays the same.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/handshake_threads.h"
#include "runtime/comm/rendezvous/wire/buffered_connection.h"
#include "runtime/comm/rendezvous/wire/control_message.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

// Compares two processes by their listeners, which they keep.
bool IsSameProcess(const Hello& a, const Hello& b);

class RejoinListener {
 public:
  // Listens at a free port of `address`; joiners hear from it every `beat`.
  static absl::StatusOr<std::unique_ptr<RejoinListener>> Open(const std::string& address,
                                                              std::string token,
                                                              absl::Duration beat);
  ~RejoinListener();
  int port() const { return port_; }

  // Is found at a second place too, as the first rank 0 at the master's address. If that is taken
  // by now the group lives without.
  void OpenAlsoAt(const Endpoint& place, const std::string& like);

  // Notes that a generation begins in which this rank is `rank`; rank 0 receives newcomers.
  void Enter(const Table& table, int rank);
  // Notes who leads and so receives newcomers while the group re-forms: this rank, or that one.
  void Lead();
  void Follow(const Hello& leader);
  // Decides what followed the generation `group`; its members hear it from now on.
  void Decide(const std::string& group, const Table& next);

  struct Joiner {
    int number = 0;
    Message word;  // Promise or JoinRequest
    bool accepted = false;
  };
  std::vector<Joiner> Joiners() const;
  // Returns when joiners came, spoke or went since the last call, or at the deadline.
  void AwaitChange(base::Deadline deadline);
  void Say(int joiner, const Message& message);
  // Returns a joiner whose words have all been heard, with all that was said to it sent. Invalid
  // when it is gone.
  base::UniqueFd Take(int joiner, const Patience& patience);
  // Tells all members that came why there will be no next generation.
  void Dismiss(const absl::Status& why);

  // Returns the newcomers that wait, kept up to date; may outlive the listener.
  std::shared_ptr<const std::atomic<int>> waiting() const { return waiting_; }

 private:
  struct Visitor {
    BufferedConnection line;
    Message word = LeaveAck{};  // nothing said yet
    bool accepted = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  RejoinListener(base::UniqueFd listener, int port, std::string token, absl::Duration beat);
  void Run();
  void Poll(Lock& lock);
  void Welcome(int listener);
  // Call with the mutex held.
  void ReadFrom(int number, Visitor& visitor);
  void OnMessage(Visitor& visitor, Message message);
  void Answer(Visitor& visitor, const Message& message);
  void OnJoinRequest(Visitor& visitor, JoinRequest request);
  void Changed();
  const Table* FollowedBy(const std::string& group) const;

  const int port_;
  const std::string token_;
  const absl::Duration beat_;
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
  base::UniqueFd wake_fd_;
  base::UniqueFd stop_fd_;

  mutable std::mutex mutex_;  // guards what follows, save the thread
  std::condition_variable changed_;
  bool stopping_ = false;
  bool news_ = false;
  std::vector<base::UniqueFd> listeners_;
  std::map<int, Visitor> visitors_;
  int next_number_ = 0;
  HandshakeThreads handshakes_;
  base::Deadline rests_until_;  // the listeners
  bool leads_ = false;
  Redirect leader_;
  Table current_;
  std::map<std::string, Table> decided_;
  std::thread thread_;
};

}  // namespace tutti::comm

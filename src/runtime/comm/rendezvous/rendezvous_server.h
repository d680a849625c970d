// RendezvousServer is rank 0's side of the rendezvous. Every connection is heard on a thread of its
// own, so that a stranger that connects and says nothing holds nobody up; it gets
// kHandshakeTimeout, and its failure is remembered only to be told if the group does not come
// together.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/handshake_threads.h"
#include "runtime/comm/rendezvous/rendezvous.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(5);
inline constexpr char kRendezvousPurpose[] = "rendezvous";

class RendezvousServer {
 public:
  // `interrupt`: ends it with Cancelled when it becomes readable; -1 for none.
  RendezvousServer(const GroupOptions& options, const Hello& self, int interrupt = -1);
  ~RendezvousServer();

  // Called once. `listener`: none for one at the options' master address.
  absl::StatusOr<RendezvousResult> Receive(base::UniqueFd listener);

 private:
  struct Joiner {
    Hello hello;
    base::UniqueFd fd;
  };

  void Handshake(base::UniqueFd fd);
  absl::StatusOr<Hello> ReceiveHello(int fd) const;
  void Admit(Hello hello, base::UniqueFd fd);
  absl::StatusOr<base::UniqueFd> ListenAtMaster() const;
  absl::Status AwaitAll(int listener);
  // Called, as these are, with the mutex held.
  absl::Status CheckJoiner(const Hello& hello);
  absl::Status Absent();
  void Dismiss(const absl::Status& why);
  absl::StatusOr<RendezvousResult> Conclude();

  const GroupOptions& options_;
  const Hello& self_;
  const base::Deadline deadline_;
  const int interrupt_;
  base::UniqueFd done_;     // readable when all have come or one came that must not be
  base::UniqueFd waiting_;  // readable when that or the interrupt is
  std::mutex mutex_;        // guards what follows, save the handshakes
  std::map<int, Joiner> joiners_;
  absl::Status fault_;
  std::string refused_;  // the last stranger's fault
  int refusals_ = 0;
  HandshakeThreads handshakes_;
};

}  // namespace tutti::comm

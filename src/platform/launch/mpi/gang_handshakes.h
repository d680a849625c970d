// GangHandshakes holds the connections to the first node of a gang until each has proved that it
// knows the job's token: all at the same time, so that a silent one holds no other up. Internal to
// this folder. Not thread-safe.
#pragma once

#include <poll.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/launch/mpi/gang_proof.h"
#include "platform/launch/node/line_socket.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

class GangHandshakes {
 public:
  struct Peer {
    int node = 0;
    bool has_mpi = false;
    LineSocket socket;
  };

  // `listener` does not block. Both outlive the object.
  GangHandshakes(const spec::LaunchPlan& plan, int listener) : plan_(plan), listener_(listener) {}

  // Returns the descriptors to poll; ReadProofs takes them with what poll(2) found.
  std::vector<pollfd> Waiting() const;
  // Returns the peers that have proved by now who they are. A connection that cannot, or takes too
  // long, is dropped.
  std::vector<Peer> ReadProofs(const std::vector<pollfd>& polled);

 private:
  struct Handshake {
    LineSocket socket;
    base::Deadline deadline = base::Deadline::After(kIntroduction);
    int node = -1;  // as it says
    bool has_mpi = false;
    std::string nonces;
  };
  void AcceptAll();
  // Reads what the far end has sent; true once it has proved that it holds the token. An error: it
  // does not hold it.
  absl::StatusOr<bool> ReadProof(Handshake& one) const;
  absl::Status Greet(const nlohmann::json& hello, Handshake& one) const;

  const spec::LaunchPlan& plan_;
  const int listener_;
  std::vector<Handshake> all_;  // in the order in which they came
};

}  // namespace tutti::launch

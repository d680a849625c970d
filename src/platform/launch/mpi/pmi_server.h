// Serves PMI-1 (pmi_protocol.h) to all ranks of a job from its first node, on a thread of its own,
// so that MPICH's and Intel MPI's are one MPI_COMM_WORLD whoever started them. A rank finds it by
// PMI_PORT and says by PMI_ID which it is. Only who comes from a node of the job and has a rank's
// PMI_ID (../environment/pmi_id.h), which another user of the node cannot read, is let in. An id is
// a number below 2^31, so ids that no rank has are heard ten a second: after one nobody new is
// taken for a tenth of a second. The ranks' own connections have no proof. Thread-compatible.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "platform/launch/environment/pmi_id.h"
#include "platform/launch/mpi/pmi_protocol.h"
#include "platform/launch/node/wakeup.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

class PmiServer {
 public:
  // Returns where the ranks of a plan find it: the first node's address, of one node alone
  // loopback's.
  static std::string AddressFor(const spec::LaunchPlan& plan);
  // Listens there, at a free port. This is the plan's first node.
  static absl::StatusOr<std::unique_ptr<PmiServer>> Listen(const spec::LaunchPlan& plan);
  // Begins to answer: who comes from this node, or from where the far ends of `sockets` (TCP) are,
  // its launchers'. Call it once; whoever has come before waits.
  void Serve(const std::vector<int>& sockets);
  // Cuts off who is still there.
  ~PmiServer();

  int port() const { return port_; }
  // Returns whether a rank is here: between its MPI_Init and its MPI_Finalize.
  bool busy() const { return busy_; }
  // Returns PmiProtocol::failure. Thread-safe.
  std::optional<PmiFailure> failure() const;
  // Is notified when the last has gone, and when a rank has called MPI_Abort.
  Wakeup& news() { return news_; }

 private:
  struct Client {
    base::UniqueFd fd;
    std::string read;  // what has come of the next line
  };

  PmiServer(base::UniqueFd listener, int port, const spec::LaunchPlan& plan, Wakeup news,
            Wakeup end)
      : listener_(std::move(listener)),
        port_(port),
        // Whoever goes to one of loopback's addresses comes from the first of them.
        nodes_({"127.0.0.1", AddressFor(plan)}),
        protocol_(plan.WorldSize(), absl::StrCat("kvs_", base::RandomHex(16)), PmiId(plan, 0)),
        news_(std::move(news)),
        end_(std::move(end)) {}
  void Run();
  // Takes all who come; false if this process can take no more for now; who waits is taken later.
  bool AcceptAll();
  // Receives what it sends; false once the client has gone, or is to be cut off.
  bool ReceiveFrom(int number, Client& client);
  bool HandleLine(int number, absl::string_view line);
  // Takes nobody new for as long beyond the time until which that is so already.
  void Pause(absl::Duration duration);
  void CutOff(int number);
  // Publishes what has changed in this turn.
  void Publish();

  const base::UniqueFd listener_;
  const int port_;
  std::set<std::string> nodes_;  // addresses of those who may come
  PmiProtocol protocol_;
  std::map<int, Client> clients_;
  int next_ = 0;
  base::Deadline pause_ = base::Deadline::After(absl::ZeroDuration());  // nobody is taken in it
  std::atomic<bool> busy_ = false;
  mutable absl::Mutex mutex_;
  std::optional<PmiFailure> failure_ ABSL_GUARDED_BY(mutex_);
  Wakeup news_;
  Wakeup end_;
  std::thread thread_;
};

}  // namespace tutti::launch

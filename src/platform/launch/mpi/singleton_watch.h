// Looks whether a process of the job has loaded Open MPI without having been started by mpirun:
// MPI_Init then makes it a singleton, an MPI_COMM_WORLD of its own. A look goes over all
// descendants of this process at once, those in containers too. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/launch/process/process_tree.h"

namespace tutti::launch {

struct MpiSingleton {
  int rank;             // whose process it is; -1 if that cannot be told
  std::string library;  // the path of the one that it has loaded
};

class SingletonWatch {
 public:
  // `began` is of base::SteadyNow.
  explicit SingletonWatch(absl::Duration began) : began_(began) {}

  // Returns the first process that has loaded Open MPI, that no mpirun of the job's own has
  // started, and that the look before found too: a process that exits or begins between the two
  // files that a look reads must not end the job.
  std::optional<MpiSingleton> Look(const std::vector<RankLeader>& leaders);

  // Returns when to look again: sooner in the first half minute, and never for more than 1/20 of
  // the time.
  absl::Duration interval() const { return interval_; }
  static absl::Duration IntervalAfter(absl::Duration since_begin, absl::Duration cost);

 private:
  const absl::Duration began_;
  pid_t suspect_ = 0;  // what the last look found; 0: nothing
  absl::Duration interval_ = IntervalAfter(absl::ZeroDuration(), absl::ZeroDuration());
};

// Returns whether the text of a /proc/PID/environ shows that no mpirun has started the process. One
// without the job's variables shows nothing: the process exits, or has written a title over it.
bool LacksMpirun(absl::string_view environ);

// Returns the path of Open MPI's library in the text of a /proc/PID/maps; or "".
std::string OpenMpiIn(absl::string_view maps);

}  // namespace tutti::launch

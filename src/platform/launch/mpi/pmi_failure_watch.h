// PmiFailureWatch looks whether a rank has left an MPI world by PMI without MPI_Finalize, for which
// the others would wait for ever: mpiexec and mpirun end a job for it too. One that fails leaves so
// as well, and its own launcher then tells more, so that it counts only a while later. One that has
// called MPI_Abort counts at once. Not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/launch/mpi/pmi_server.h"

namespace tutti::launch {

class PmiFailureWatch {
 public:
  static constexpr absl::Duration kPatience = absl::Seconds(2);
  static constexpr absl::Duration kInterval = absl::Milliseconds(250);  // of looks

  // Returns what counts: an abort, and what else has lasted for kPatience. `now` is
  // base::SteadyNow.
  std::optional<MpiFailure> Look(std::optional<PmiFailure> failure, absl::Duration now);

 private:
  int rank_ = -1;  // that has left; -1: none
  absl::Duration since_;
};

// Returns "called MPI_Abort with exit code 3", …: what is told of it after the rank's name.
std::string WordsOf(const PmiFailure& failure);

}  // namespace tutti::launch

// The limits of a launcher that no plan sets; tests make them short.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace tutti::launch {

struct LauncherOptions {
  // Undelivered output of the node. At the limit, or where the disk is full, the processes wait in
  // their writes until there is room.
  uint64_t spool_limit = uint64_t{2} << 30;
  // How long a disk is full before the job's user is told.
  absl::Duration full_disk_told_after = absl::Seconds(5);
  // How long they wait for a disk that fails otherwise before the job is ended for it; and what is
  // left of their output for a full one, once the launcher is told to end.
  absl::Duration spool_patience = absl::Minutes(10);
  // To put code, environment and inputs in place, of which a store that is away alone may take
  // StorePatience::limit; and for the gang's other nodes, which may take as long.
  absl::Duration prepare_limit = absl::Hours(48);
  absl::Duration go_limit = absl::Hours(48);
  // Ranks that Slurm or mpirun does not start; as long as its controller may be away.
  absl::Duration rank_start_limit = absl::Minutes(10);
  // Ranks that another node's launcher was to bring have so long once it has ended: by then the
  // service, which knows why, has told this one to end.
  absl::Duration alone_limit = absl::Seconds(30);
  // The delivery of what is left may take so long once the processes have ended; and so long again
  // after the service last said that it takes it later, as its disk is full.
  absl::Duration delivery_limit = absl::Hours(24);
  // A job that has failed or is told to end has so long to put outputs into stores; it is less than
  // the service waits for a word of such a launcher.
  absl::Duration storing_after_failure = absl::Minutes(1);
  // Processes and threads of the node's ranks together; 0: MostProcesses of process_limit.h.
  int most_processes = 0;
  // Processes that a rank has left behind when all ranks have ended.
  absl::Duration leftover_grace = absl::Seconds(2);
};

}  // namespace tutti::launch

// Says in one line why a job failed: a pure function of how its processes and launchers ended.
// Among many ranks that failed it finds the first cause and marks the rest as what followed from
// it.
//
// A rank's failure is a consequence if we stopped it ourselves, or if its own last words speak of a
// lost peer ("rank 2 left", "Connection reset by peer", a NCCL, Gloo or MPI timeout) and something
// else can have been that loss: a failure that is no consequence, a launcher that died, or a rank
// that exited 0 while the others still needed it. The earliest failure that is no consequence is
// the cause; ties go to the lower rank. A rank that had shown an exception of its own when we
// stopped it was failing, and is the cause if all that failed before it speak of a lost peer: one
// that fails may close its connections long before it ends. At the time limit of an MPI job a rank
// whose last words were an exception is the cause too, if others had shown none: it waits for them
// as it ends, as mpi4py does, and they wait for it. So may be one whose Python program had come to
// its end when others' had not, as by sys.exit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/service/diagnosis/failure_kind.h"

namespace tutti::service {

struct RankExit {
  int rank = 0;
  std::string node;
  absl::Time time;
  absl::Duration heard;  // since boot, when its launcher told of it
  int code = 0;
  int signal = 0;  // 0: exited by itself
  bool out_of_memory = false;
  bool not_for_memory = false;  // SIGKILL, and nothing was killed for want of memory
  bool stopped = false;         // by our own stop, after something else
  std::string last_error;
  std::string error_before_stop;  // of one that is stopped: the exception that it had shown before
  bool error_was_last = false;    // and nothing after it, on stdout either
  bool python_ended = false;      // when it was stopped its Python program had come to its end
  bool ok() const { return code == 0 && signal == 0; }
};

// Holds what one launcher said last, or that it said nothing.
struct NodeEnd {
  std::string node;
  bool ok = true;
  std::string reason;     // what went wrong outside of the processes: staging, time limit, upload
  int rank = -1;          // `reason` is what this one did ("left MPI"), be it another node's
  std::string rank_node;  // on which it runs
  bool lost = false;      // the launcher died; `reason` says what is known
  bool unexplained = false;       // and nobody knows why: another launcher's death may be why
  bool silent = false;            // its launcher is not heard of, and may not have died
  bool unlaunched = false;        // the cluster did not begin its ranks: no fault of the job's
  bool disk_fault = false;        // it could not prepare, for its disk (node_fault.h)
  std::string ill;                // what its launcher found to be wrong with the node itself
  bool shared_disk_full = false;  // the disk of all nodes was full, for which none is at fault
  bool filled_by_job = false;     // or the job's own, whose files have filled it
  bool refused = false;           // for either of these it ran nothing of the job
  bool told = false;              // it was ended from outside, and knows no more
  bool timed_out = false;         // it ended its processes at the job's time limit
  absl::Time time;                // when that was noticed
  int64_t memory_bytes = 0;       // the node's share, for out of memory; 0: unlimited
  bool is_part = false;           // what the job has of the node, which others have too
};

struct Failure {
  int rank = -1;  // -1: of the node, not of a process
  std::string node;
  std::string what;  // "was killed by signal 9 (SIGKILL)", "failed with exit code 1: KeyError"
  bool consequence = false;
  FailureKind kind = FailureKind::kOther;
};

struct GangEnd {
  std::vector<RankExit> exits;  // any order; a rank whose end nobody saw is absent
  std::vector<NodeEnd> nodes;
  absl::Duration time_limit = absl::InfiniteDuration();
  bool mpi = false;        // its ranks are to be one MPI world
  std::string verdict;     // how the cluster ended the whole job, if that has a reason of its own
  bool lost = false;       // and that is the loss of a node
  bool disk_full = false;  // or that the disk of all its nodes was full: nothing of it had begun
  bool judged = false;     // the cluster has said that it is over, with a verdict or without
  bool timed_out = false;  // the service itself ended the job at its time limit
  // A rank that left MPI without MPI_Finalize, however it ended, for which the others were ended.
  std::optional<Failure> left;
};

struct Diagnosis {
  std::string line;               // "" if nothing failed
  std::vector<Failure> failures;  // the cause first, then in order of time
  bool lost_node = false;         // the cause is the loss of a node or of its launcher
  bool ran_nothing = false;       // and that was known before any process began
  bool disk_full = false;         // and it was no node's fault: the disk of all nodes was full
  bool filled_by_job = false;     // of what the job itself had put there
  bool verdict_counts = false;    // if the cluster has yet to say how it ended, that is the cause
  // Since when, after boot, failures are known that all speak of a lost peer, while no peer has
  // failed.
  std::optional<absl::Duration> unexplained_since;
  bool failed() const { return !line.empty(); }
};

Diagnosis Diagnose(const GangEnd& end);

}  // namespace tutti::service

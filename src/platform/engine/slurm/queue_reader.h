// Parses what Slurm's commands print: `squeue --json` of 22.05 and later, sacct's records, sinfo's
// nodes, and lists of hosts ("n[1-3,07],login"). Whatever the text, a status or a value comes back.
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/engine/data_wish.h"
#include "platform/engine/engine.h"

namespace tutti::engine {

enum class SlurmPhase { kWaiting, kRunning, kEnded };

// One of squeue's jobs.
struct SlurmJob {
  int64_t id = 0;
  SlurmPhase phase = SlurmPhase::kWaiting;
  std::string state;   // in Slurm's word: PENDING, NODE_FAIL
  std::string reason;  // likewise: Resources
  std::string name;
  std::string comment;
  std::string nodes;                         // a list of hosts; empty while it waits
  std::optional<absl::Time> expected_start;  // while it waits, if Slurm has planned it
  absl::Time start = absl::InfinitePast();   // of its last run, once that has begun
  bool booting = false;                      // its nodes are being made ready
  bool preempted = false;                    // it was told to make way for another
  int exit_code = 0;                         // its batch script's, once that has ended by itself
};

// Returns the jobs whose comment begins with `comment`. DataLoss if it is no such document or lacks
// the state of such a job, Unavailable if it tells of an error: its list may then be empty,
// whatever there is.
absl::StatusOr<std::vector<SlurmJob>> ReadQueue(absl::string_view json, absl::string_view comment);

// sacct is asked for these fields of each job.
inline constexpr absl::string_view kRecordFormat = "JobIDRaw,JobName,State";

// A job in Slurm's accounting, with its number, state and phase alone.
struct SlurmRecord {
  SlurmJob job;
  std::string name;
};

// Reads the lines of `sacct --parsable2` in that format; those that are no such lines are left out.
std::vector<SlurmRecord> ReadRecords(absl::string_view lines);

// Returns the hosts in the list's order. InvalidArgument for what is no list, and beyond 65,536
// hosts.
absl::StatusOr<std::vector<std::string>> ExpandHosts(absl::string_view hosts);

// sinfo is asked for these of each node: name, state, processors, memory in MiB, address, why it is
// not used.
inline constexpr absl::string_view kNodeFormat = "%N|%T|%c|%m|%o|%E";

// Reads the lines of `sinfo --Node` in that format, each node once; lines that are none are left
// out.
std::vector<Node> ReadNodes(absl::string_view lines);

// sinfo is asked for these of each node: name, state, processors (allocated/idle/other/total),
// partition, with "*" if it is the default one.
inline constexpr absl::string_view kRoomFormat = "%N|%T|%C|%P";

// Reads the lines of `sinfo --Node` in that format, each node once. With an empty `partition`, of
// the default one alone. Lines that are none are left out.
std::vector<NodeWithRoom> ReadRoom(absl::string_view lines, absl::string_view partition);

// Reads the lines of `sinfo --format=%G`: false if they tell of nodes' resources, and of no GPU.
bool MayHaveGpus(absl::string_view lines);

}  // namespace tutti::engine

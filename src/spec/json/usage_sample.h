// UsageSample is what a launcher has seen of the processes of its node at one moment: what each
// rank uses, what all of them use together, what the job's GPUs do, and what the machine has left.
// It goes to the service as a line of JSON (docs/formats/usage.md).
//
// Units: processors in cores (1.5: one and a half were busy), memory in bytes, transfers in bytes a
// second; rates are over the time since the sample before. NaN: not known.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::spec {

inline constexpr float kUnknownUsage = std::numeric_limits<float>::quiet_NaN();

// What the processes of one rank use, with all that they have started.
struct RankUsage {
  int rank = 0;
  float cpu = kUnknownUsage;         // cores
  float memory = kUnknownUsage;      // bytes that are resident, but for mapped files
  float disk_read = kUnknownUsage;   // bytes a second that came from disks or file servers
  float disk_write = kUnknownUsage;  // likewise
  // The part of the time, 0 to 1, in which the first thread of its busiest process could have run
  // and had no processor.
  float cpu_wait = kUnknownUsage;
  bool stopped = false;  // that process is, as by SIGSTOP or a debugger
  bool blocked = false;  // that thread waits for a disk, a file server or a device (state D)
};

// What one of the job's GPUs on the node does, whoever uses it.
struct GpuUsage {
  std::string gpu;               // as CUDA_VISIBLE_DEVICES names it: "0", "GPU-8a5c…", "MIG-…"
  float use = kUnknownUsage;     // the part of the time, 0 to 1, in which a kernel ran
  float memory = kUnknownUsage;  // bytes in use, the driver's too
  float memory_total = kUnknownUsage;  // bytes that it has
  float power = kUnknownUsage;         // watts
  float temperature = kUnknownUsage;   // degrees Celsius
};

struct UsageSample {
  absl::Time time;               // by the clock of who has made it
  float cpu = kUnknownUsage;     // of all processes of the job on this node
  float memory = kUnknownUsage;  // likewise
  // What they can take before a limit of theirs is reached: the node's share of memory, that of a
  // cgroup, or what the machine has available.
  float memory_left = kUnknownUsage;
  float disk_read = kUnknownUsage;
  float disk_write = kUnknownUsage;
  // Of the whole machine, whoever uses them.
  float machine_cpu = kUnknownUsage;
  float net_receive = kUnknownUsage;  // by network cards; not between processes of one machine
  float net_send = kUnknownUsage;
  float samples = 1;  // that it stands for, by which means are weighed; 1 in a line of JSON
  std::vector<RankUsage> ranks;
  std::vector<GpuUsage> gpus;  // none: it has none, or they tell nothing
};

// Returns one line, without a newline at its end.
std::string ToJson(const UsageSample& sample);
// InvalidArgument if it is no such document; fields of later versions are passed over, and ranks
// and GPUs that are none. Earlier versions have no `gpus`.
absl::StatusOr<UsageSample> UsageSampleFromJson(absl::string_view line);

}  // namespace tutti::spec

// Finds faults of NVIDIA's GPUs by nvidia-smi and the kernel's log: GPUs that were there before and
// are not now, uncorrected errors of their memory, and XIDs in the kernel's log that speak of the
// device and not of a program.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/health/node_check.h"

namespace tutti::health {

struct Gpu {
  std::string index, uuid;
  std::string bus;                            // "0000:3b:00"
  std::optional<int64_t> uncorrected_errors;  // since its driver was loaded; none: it has no ECC
};

// Parses the lines of this command; InvalidArgument if one is no such line: `nvidia-smi
// --query-gpu=index,uuid,pci.bus_id,ecc.errors.uncorrected.volatile.total
// --format=csv,noheader,nounits`.
absl::StatusOr<std::vector<Gpu>> ParseGpus(absl::string_view text);

// A driver that hangs takes nvidia-smi with it.
inline constexpr absl::Duration kGpuLimit = absl::Seconds(30);

// Asks nvidia-smi, a program or its path, for the GPUs. NotFound: it is not there; Cancelled:
// `abandoned` was set. Any other error is one of the GPUs or their driver.
absl::StatusOr<std::vector<Gpu>> FindGpus(const std::string& nvidia_smi,
                                          const std::atomic<bool>& abandoned);

// Returns all that the kernel's log still has; "" where it may not be read.
std::string ReadKernelLog();

struct Xid {
  std::string bus;
  int code = 0;
};

// An error counts for this long. A lasting fault shows otherwise: in the counters, or by a GPU that
// is gone.
inline constexpr absl::Duration kXidCounts = absl::Hours(24);

// Returns the errors in the kernel's log after which a device is not to be used before it is reset:
// of its memory (48, 64, 95), its NVLink (74), one that has left the bus (79), its firmware (119,
// 120). Those up to `after`, since boot, are left out; a line that says no time counts.
std::vector<Xid> DeviceXids(absl::string_view kernel_log, absl::Duration after);

// Returns when the log's last line was written, since boot; minus infinity if none says it.
absl::Duration LastTimeOf(absl::string_view kernel_log);

// GpuFault is what is wrong with a GPU.
struct GpuFault {
  std::string index, uuid;
  std::string what;
};

// Returns the faults of the GPUs that were there `before` or are there `now`, in the order of their
// numbers.
std::vector<GpuFault> FaultsOf(const std::vector<Gpu>& before, const std::vector<Gpu>& now,
                               const std::vector<Xid>& xids);

// Returns the check of a node that has these GPUs, as CUDA_VISIBLE_DEVICES names them (by number,
// or by UUID or the beginning of that), from the faults of all its machine has.
NodeCheck CheckGpus(const std::vector<GpuFault>& faults, const std::vector<std::string>& gpus);
// Returns it where FindGpus has failed: unknown where that says nothing of the devices.
NodeCheck CheckOfUnseenGpus(const absl::Status& failure);

// Writes the text that is kept in a file: a line for each GPU.
std::string ToText(const std::vector<Gpu>& gpus);
std::vector<Gpu> GpusFromText(absl::string_view text);

}  // namespace tutti::health

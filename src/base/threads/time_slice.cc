#include "base/threads/time_slice.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/status.h"

namespace tutti::base {
namespace {

// struct sched_attr of sched_setattr(2), version 0, which glibc 2.36 does not declare.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;  // ns
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

absl::Status SetTimeSlice(absl::Duration slice) {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) {
    return ErrnoStatus("read how this thread is scheduled", errno);
  }
  attributes.runtime = static_cast<uint64_t>(absl::ToInt64Nanoseconds(slice));
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) {
    return ErrnoStatus("set the time slice of this thread", errno);
  }
  return absl::OkStatus();
}

}  // namespace tutti::base

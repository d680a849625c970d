#include "platform/storage/transfer/activity.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"

namespace tutti::storage {

absl::Duration SilenceWatch::Look(int64_t bytes, absl::Duration now) {
  const int64_t steps = activity_.steps();
  if (steps != steps_ || bytes != bytes_ || activity_.is_on_disk()) since_ = now;
  steps_ = steps;
  bytes_ = bytes;
  return now - since_;
}

// A descriptor may be closed, or be another one's, by the time that it is asked: then it counts as
// what it is.
int64_t BytesOfConnections() {
  uint64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    int fd = -1;
    tcp_info info = {};
    socklen_t size = sizeof info;
    if (!absl::SimpleAtoi(entry->path().filename().native(), &fd) ||
        ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
      continue;
    }
    bytes += info.tcpi_bytes_received + info.tcpi_bytes_acked;
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace tutti::storage

// Runs groups of ranks as threads of one process, for this room's tests.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {

inline bool Says(const absl::Status& status, absl::string_view text) {
  return status.message().find(text) != absl::string_view::npos;
}

inline base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(60))); }

// Returns true for the first who asks on this machine, until its process ends: a socket's name,
// which only one can have.
inline bool ClaimPortForThisProcess(int port) {
  static std::vector<base::UniqueFd>* const claims = new std::vector<base::UniqueFd>;
  static absl::Mutex mutex;
  base::UniqueFd claim(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::string name = "tutti-test-port-" + std::to_string(port);
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  name.copy(where.sun_path + 1, sizeof(where.sun_path) - 1);  // after a zero byte: not a file's
  const size_t size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  if (::bind(claim.get(), reinterpret_cast<sockaddr*>(&where), static_cast<socklen_t>(size)) != 0) {
    return false;
  }
  absl::MutexLock lock(&mutex);
  claims->push_back(std::move(claim));
  return true;
}

// Returns a port that is free now, and that the system gives to nobody who does not ask for it by
// number: below the range of ports for connections. No call, of this or another process, gives it
// again while this process lives.
inline int FreePort() {
  constexpr int kFirst = 20000, kMany = 12000;
  static std::atomic<unsigned> next = static_cast<unsigned>(::getpid()) * 2999;
  while (true) {
    const int port = kFirst + static_cast<int>(next++ % kMany);
    if (ClaimPortForThisProcess(port) && Listen({"127.77.0.1", port}).ok()) return port;
  }
}

inline std::vector<GroupOptions> OptionsFor(int size, GroupOptions::Transport transport,
                                            int ranks_per_node = 1 << 16) {
  const int port = FreePort();
  std::vector<GroupOptions> all(size);
  for (int rank = 0; rank < size; ++rank) {
    GroupOptions& options = all[rank];
    options.rank = rank;
    options.size = size;
    options.node = rank / ranks_per_node;
    options.address = "127.77.0." + std::to_string(options.node + 1);
    options.master_address = "127.77.0.1";
    options.master_port = port;
    options.token = "a token";
    options.transport = transport;
  }
  return all;
}

// Runs `body` on a thread for every rank, with the group that it joined (or why it could not).
inline void OnEveryRank(
    const std::vector<GroupOptions>& options,
    const std::function<void(int rank, absl::StatusOr<std::unique_ptr<Communicator>> group)>&
        body) {
  std::vector<std::thread> threads;
  for (const GroupOptions& one : options) {
    threads.emplace_back([&body, &one] { body(one.rank, JoinGroup(one)); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::comm

// A group whose ranks are threads of one process, for tests: collectives add in rank order through
// shared memory, a test can watch and fail them. Each communicator is used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace tutti::parallel {

struct ThreadGroupWatch {
  // Called by each rank as it enters an all-reduce of `count` elements; an error fails it there,
  // and with it the group.
  std::function<absl::Status(int rank, size_t count)> on_all_reduce;
};

std::vector<std::unique_ptr<comm::Communicator>> MakeThreadGroup(int size,
                                                                 ThreadGroupWatch watch = {});

// Runs `body(rank, communicator)` on `size` threads and waits for all.
void OnEveryRank(int size,
                 const std::function<void(int, std::unique_ptr<comm::Communicator>)>& body,
                 ThreadGroupWatch watch = {});

}  // namespace tutti::parallel

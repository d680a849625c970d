// Makes a real group whose ranks are threads of this process, which a test can watch and fail. Each
// communicator is used by one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace tutti::parallel {

struct ThreadGroupWatch {
  // Called by each rank as it enters an all-reduce of `count` elements; an error is that call's,
  // and this rank leaves the group with it.
  std::function<absl::Status(int rank, size_t count)> on_all_reduce;
};

std::vector<std::unique_ptr<comm::Communicator>> MakeThreadGroup(int size,
                                                                 ThreadGroupWatch watch = {});

// Runs `body(rank, communicator)` on `size` threads and waits for all.
void OnEveryRank(int size,
                 const std::function<void(int, std::unique_ptr<comm::Communicator>)>& body,
                 ThreadGroupWatch watch = {});

}  // namespace tutti::parallel

// Run carries out one response; it holds what the pieces of RunResponse share (runner.h). One
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/comm/negotiation/execution/fusion_pack.h"
#include "runtime/comm/negotiation/execution/runner.h"

namespace tutti::comm {

class Run {
 public:
  using Tasks = std::vector<std::unique_ptr<Task>>;

  Run(Team& team, const Response& response, const Tasks& tasks, Timeline* timeline,
      base::Deadline deadline)
      : team_(team),
        group_(*team.group),
        response_(response),
        tasks_(tasks),
        timeline_(timeline),
        deadline_(deadline) {}

  absl::Status All();

 private:
  absl::Status AllReduce();
  absl::Status ReducePack(const Pack& pack, const Request& request);
  absl::Status Sum(const Pack& pack, const Request& request, std::byte* buffer);
  absl::Status SumEncoded(const Request& request, std::span<float> values);
  absl::Status Broadcast();
  absl::Status BroadcastPack(const Pack& pack, int root);
  absl::Status AllGather(Task& task, const Unit& unit);
  absl::Status AllToAll(Task& task);
  absl::Status ReduceScatter(Task& task);

  std::vector<Piece> Pieces();
  const Request& RequestOf(size_t unit) const;
  // Returns the memory of an output; the operation's own, with a fault to be told, when the caller
  // has none.
  void* OutputOf(Task& task, size_t part, std::vector<int64_t> shape);
  void Phase(const Pack& pack, const char* phase);
  template <typename Collective>
  absl::Status Timed(const Pack& pack, const char* phase, const Collective& collective) {
    if (timeline_ == nullptr) return collective();
    Phase(pack, phase);
    const absl::Status status = collective();
    Phase(pack, nullptr);
    return status;
  }

  Team& team_;
  Communicator& group_;
  const Response& response_;
  const Tasks& tasks_;
  Timeline* const timeline_;
  const base::Deadline deadline_;
};

size_t RowBytes(const Part& part);

}  // namespace tutti::comm

#include "runtime/parallel/thread_group_fake.h"

#include <thread>
#include <utility>

#include "runtime/comm/group/join.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::parallel {
namespace {

using comm::DataType;
using comm::ReduceOp;

// All but all-reduce are the group's.
class Watched final : public comm::Communicator {
 public:
  Watched(std::unique_ptr<comm::Communicator> group, const ThreadGroupWatch& watch)
      : group_(std::move(group)), watch_(watch), rank_(group_->rank()), size_(group_->size()) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  comm::Placement placement() const override {
    return group_ == nullptr ? comm::Placement() : group_->placement();
  }
  absl::Status AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                         base::Deadline deadline) override {
    if (fault_.ok()) fault_ = watch_.on_all_reduce(rank_, count);
    if (!fault_.ok()) group_.reset();
    return Do([&] { return group_->AllReduce(data, count, type, op, deadline); });
  }
  absl::Status ReduceScatter(const void* input, std::span<const size_t> counts, void* output,
                             DataType type, ReduceOp op, base::Deadline deadline) override {
    return Do([&] { return group_->ReduceScatter(input, counts, output, type, op, deadline); });
  }
  absl::Status Broadcast(void* data, size_t bytes, int root, base::Deadline deadline) override {
    return Do([&] { return group_->Broadcast(data, bytes, root, deadline); });
  }
  absl::Status AllGather(const void* input, size_t bytes, void* output,
                         base::Deadline deadline) override {
    return Do([&] { return group_->AllGather(input, bytes, output, deadline); });
  }
  absl::Status AllGatherV(const void* input, std::span<const size_t> bytes, void* output,
                          base::Deadline deadline) override {
    return Do([&] { return group_->AllGatherV(input, bytes, output, deadline); });
  }
  absl::Status AllToAllV(const void* input, std::span<const size_t> send_bytes, void* output,
                         std::span<const size_t> receive_bytes, base::Deadline deadline) override {
    return Do(
        [&] { return group_->AllToAllV(input, send_bytes, output, receive_bytes, deadline); });
  }
  absl::Status Barrier(base::Deadline deadline) override {
    return Do([&] { return group_->Barrier(deadline); });
  }
  absl::Status Send(const void* data, size_t bytes, int to, base::Deadline deadline) override {
    return Do([&] { return group_->Send(data, bytes, to, deadline); });
  }
  absl::Status Receive(void* data, size_t bytes, int from, base::Deadline deadline) override {
    return Do([&] { return group_->Receive(data, bytes, from, deadline); });
  }
  absl::StatusOr<std::unique_ptr<comm::Communicator>> NewGroup(std::span<const int> ranks,
                                                               base::Deadline deadline) override {
    if (!fault_.ok()) return fault_;
    return group_->NewGroup(ranks, deadline);
  }
  absl::StatusOr<std::unique_ptr<comm::SharedBuffer>> AllocateShared(size_t bytes) override {
    return group_->AllocateShared(bytes);
  }

 private:
  template <typename Call>
  absl::Status Do(const Call& call) {
    return fault_.ok() ? call() : fault_;
  }

  std::unique_ptr<comm::Communicator> group_;  // null when the test has failed it
  const ThreadGroupWatch watch_;
  const int rank_;
  const int size_;
  absl::Status fault_;
};

comm::GroupOptions Options(int rank, int size, int port) {
  comm::GroupOptions options;
  options.rank = rank;
  options.size = size;
  options.master_port = port;
  options.token = "of a test";
  return options;
}

}  // namespace

std::vector<std::unique_ptr<comm::Communicator>> MakeThreadGroup(int size, ThreadGroupWatch watch) {
  base::UniqueFd listener = comm::Listen({"127.0.0.1", 0}).value();
  const int port = comm::PortOf(listener.get()).value();
  std::vector<std::unique_ptr<comm::Communicator>> group(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      auto& own = group[static_cast<size_t>(rank)];
      own = comm::Join(Options(rank, size, port),
                       rank == 0 ? std::move(listener) : base::UniqueFd(), {})
                .value();
      if (watch.on_all_reduce) own = std::make_unique<Watched>(std::move(own), watch);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return group;
}

void OnEveryRank(int size,
                 const std::function<void(int, std::unique_ptr<comm::Communicator>)>& body,
                 ThreadGroupWatch watch) {
  auto group = MakeThreadGroup(size, std::move(watch));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { body(rank, std::move(group[static_cast<size_t>(rank)])); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tutti::parallel

#include "runtime/parallel/thread_group_fake.h"

#include <cstring>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace tutti::parallel {
namespace {

// Where the ranks meet: the last to come does the work for all. `work` gets every rank's pointer.
class Meeting {
 public:
  Meeting(int size, ThreadGroupWatch watch)
      : watch_(std::move(watch)), pointers_(static_cast<size_t>(size)) {}

  const ThreadGroupWatch& watch() const { return watch_; }

  absl::Status Meet(int rank, void* data, base::Deadline deadline,
                    const std::function<void(const std::vector<void*>&)>& work) {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    pointers_[static_cast<size_t>(rank)] = data;
    const int64_t round = round_;
    if (++arrived_ == pointers_.size()) {
      work(pointers_);
      arrived_ = 0;
      ++round_;
      return absl::OkStatus();
    }
    const auto over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return round_ != round || !status_.ok();
    };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&over), deadline.Remaining())) {
      status_ = absl::DeadlineExceededError("some rank did not come");
    }
    return round_ != round ? absl::OkStatus() : status_;
  }

  absl::Status Fail(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    if (status_.ok()) status_ = std::move(status);
    return status_;
  }

 private:
  const ThreadGroupWatch watch_;
  absl::Mutex mutex_;
  std::vector<void*> pointers_ ABSL_GUARDED_BY(mutex_);
  size_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t round_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

template <typename T>
void Sum(const std::vector<void*>& pointers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T sum = 0;
    for (void* pointer : pointers) sum += static_cast<T*>(pointer)[i];
    for (void* pointer : pointers) static_cast<T*>(pointer)[i] = sum;
  }
}

class ThreadCommunicator final : public comm::Communicator {
 public:
  ThreadCommunicator(int rank, int size, std::shared_ptr<Meeting> meeting)
      : rank_(rank), size_(size), meeting_(std::move(meeting)) {}
  ~ThreadCommunicator() override {
    (void)meeting_->Fail(absl::UnavailableError(absl::StrCat("rank ", rank_, " left")));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  absl::Status AllReduce(void* data, size_t count, comm::DataType type, comm::ReduceOp op,
                         base::Deadline deadline) override {
    if (op != comm::ReduceOp::kSum) return absl::UnimplementedError("sum only");
    if (meeting_->watch().on_all_reduce) {
      if (auto status = meeting_->watch().on_all_reduce(rank_, count); !status.ok()) {
        return meeting_->Fail(status);
      }
    }
    return meeting_->Meet(rank_, data, deadline, [&](const std::vector<void*>& pointers) {
      if (type == comm::DataType::kFloat64) Sum<double>(pointers, count);
      if (type == comm::DataType::kFloat32) Sum<float>(pointers, count);
      if (type == comm::DataType::kInt64) Sum<int64_t>(pointers, count);
    });
  }

  absl::Status Broadcast(void* data, size_t bytes, int root, base::Deadline deadline) override {
    return meeting_->Meet(rank_, data, deadline, [&](const std::vector<void*>& pointers) {
      for (void* pointer : pointers)
        std::memmove(pointer, pointers[static_cast<size_t>(root)], bytes);
    });
  }

  absl::Status AllGather(const void*, size_t, void*, base::Deadline) override {
    return absl::UnimplementedError("no all-gather between threads");
  }

  absl::Status Barrier(base::Deadline deadline) override {
    return meeting_->Meet(rank_, nullptr, deadline, [](const std::vector<void*>&) {});
  }

 private:
  const int rank_;
  const int size_;
  const std::shared_ptr<Meeting> meeting_;
};

}  // namespace

std::vector<std::unique_ptr<comm::Communicator>> MakeThreadGroup(int size, ThreadGroupWatch watch) {
  const auto meeting = std::make_shared<Meeting>(size, std::move(watch));
  std::vector<std::unique_ptr<comm::Communicator>> group;
  for (int rank = 0; rank < size; ++rank) {
    group.push_back(std::make_unique<ThreadCommunicator>(rank, size, meeting));
  }
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

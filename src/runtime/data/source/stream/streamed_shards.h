// StreamedShards is a split of tar shards that lie in a store: its index says at once what there
// is, and each shard is brought to the node's cache, mapped and read as OpenTarShards reads it when
// the sampler is about to ask for its images. A thread does that, in the order that the sampler
// tells; who asks for an image of another shard waits until it is there. What the sampler is done
// with goes, as far as the disk needs it.
//
// Invariant: the thread alone speaks to the store's program; a shard is open only while it is held
// there. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source/shard_index.h"
#include "runtime/data/source/stream/stream_client.h"

namespace tutti::data {

class StreamedShards final : public Dataset {
 public:
  // Connects, and reads the index and classes.txt. NotFound: no such split (names those that there
  // are); FailedPrecondition: it has no index, or the index is of other shards; errors of
  // StreamClient.
  static absl::StatusOr<std::shared_ptr<const Dataset>> Open(const std::string& address,
                                                             absl::string_view split,
                                                             const StreamOptions& options);
  ~StreamedShards() override;

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  // 0 of an image whose shard was never read: AwaitLabel waits for it.
  int64_t label(int64_t index) const override { return labels_.at(static_cast<size_t>(index)); }
  absl::Status AwaitLabel(int64_t index) const override;
  Annotations annotations() const override { return index_.annotations; }
  int64_t most_boxes() const override { return index_.most_boxes; }
  // Both wait for the shard, and copy. Unavailable: the store is away; FailedPrecondition: it does
  // not give the shard, or the shard is none.
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const override;
  absl::StatusOr<absl::string_view> Annotation(int64_t index, std::string& scratch) const override;
  std::string Describe(int64_t index) const override;
  std::vector<std::string> Remarks() const override { return RemarksOf(index_); }
  void WillNeed(int64_t index) const override;
  std::span<const int64_t> parts() const override { return parts_; }
  std::string Fingerprint() const override { return ToText(index_); }
  void WillVisit(std::span<const int64_t> now, std::span<const int64_t> next) const override;

 private:
  using Shard = std::shared_ptr<const Dataset>;
  // What is known of one shard just now.
  struct Part {
    Shard shard;                          // null: it is not open
    std::optional<absl::Status> failure;  // of the last time that it was to be opened
    int waiting = 0;                      // threads that wait for it: they see it before it goes
    bool has_labels = false;
  };

  StreamedShards(std::string address, const StreamOptions& options)
      : address_(std::move(address)), options_(options) {}
  absl::Status Connect(absl::string_view split);
  absl::Status CheckShards(const std::vector<StreamedFile>& files) const;
  absl::StatusOr<std::string> ReadSmall(const std::string& name);

  size_t PartOf(int64_t index) const;
  absl::StatusOr<Shard> Await(size_t part) const;
  void Run();
  std::vector<size_t> Expired() const;  // these need the mutex held
  std::vector<std::string> Ahead() const;
  std::optional<size_t> Next();
  void FollowPlan(std::unique_lock<std::mutex>& lock);
  void OpenPart(size_t part, std::unique_lock<std::mutex>& lock);
  absl::StatusOr<Shard> Fetch(size_t part);
  void TakeLabels(size_t part, const Dataset& shard);

  const std::string address_;
  const StreamOptions options_;
  ShardIndex index_;
  std::vector<std::string> classes_;
  std::vector<int64_t> parts_, first_;  // of each shard: how many images, and the first
  std::vector<int64_t> labels_;

  std::atomic<bool> ending_ = false;
  std::unique_ptr<StreamClient> client_;  // the thread's, once it runs
  mutable std::mutex mutex_;
  mutable std::condition_variable work_, opened_;
  mutable std::vector<Part> state_;
  mutable std::deque<size_t> wishes_;                 // somebody waits for these
  mutable std::vector<int64_t> now_, before_, next_;  // the plan; what was `now` before it
  mutable bool has_new_plan_ = false;
  std::thread thread_;
};

}  // namespace tutti::data

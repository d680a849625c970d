// A rank of tutti's all-reduce for benchmarks/collectives/compare.
//
//   RANK=… WORLD_SIZE=… MASTER_ADDR=… MASTER_PORT=… [NODE_RANK=…]
//     tutti_rank CONTROL_SOCKET [shared | step none|fp16|bf16|int8]
//
// shared: the values lie in memory that the ranks of a node share (Communicator::AllocateShared).
// step: "all-reduce" means a training step of a model with that many bytes of parameters and hardly
// any computation: gradients appear bucket by bucket, are reduced while the next ones are computed,
// and an optimizer updates each bucket as it is there. fp16, bf16, int8: gradients are compressed,
// with error feedback.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "rank_program.h"
#include "runtime/comm/collective/compression/compression.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/stream.h"
#include "values.h"

namespace {

using tutti::base::Deadline;
using tutti::benchmark::Contender;
using tutti::benchmark::Fail;
using tutti::comm::Communicator;
using tutti::comm::Encoding;

constexpr auto kFloat32 = tutti::comm::DataType::kFloat32;
constexpr auto kSum = tutti::comm::ReduceOp::kSum;

Deadline Soon() { return Deadline::After(absl::Seconds(120)); }

void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

std::unique_ptr<Communicator> Join() {
  const auto options = tutti::comm::GroupOptionsFromEnvironment();
  Check(options.status());
  auto group = tutti::comm::JoinGroup(*options);
  Check(group.status());
  return *std::move(group);
}

class Plain final : public Contender {
 public:
  Plain(std::unique_ptr<Communicator> group, bool shared)
      : group_(std::move(group)), shared_(shared) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  float* Buffer(size_t count) override {
    if (count_ == count) return data_;
    count_ = count;
    if (shared_) {
      auto buffer = group_->AllocateShared(count * sizeof(float));
      Check(buffer.status());
      buffer_ = *std::move(buffer);
      data_ = static_cast<float*>(buffer_->data());
    } else {
      own_ = Values(count);
      data_ = own_.data();
    }
    std::fill_n(data_, count, 0.0f);
    return data_;
  }
  void Barrier() override { Check(group_->Barrier(Soon())); }
  void AllReduce(size_t count) override {
    Check(group_->AllReduce(data_, count, kFloat32, kSum, Soon()));
  }

 private:
  const std::unique_ptr<Communicator> group_;
  const bool shared_;
  size_t count_ = 0;
  float* data_ = nullptr;
  Values own_;
  std::unique_ptr<tutti::comm::SharedBuffer> buffer_;
};

// A model without layers: the gradient of a value is a part of the value, plus a little that is
// this rank's own.
class Step final : public Contender {
 public:
  Step(std::unique_ptr<Communicator> group, std::optional<Encoding> compression)
      : stream_(std::move(group)) {
    if (compression) compressed_.emplace(*compression);
  }
  int rank() const override { return stream_.rank(); }
  int size() const override { return stream_.size(); }
  float* Buffer(size_t count) override {
    if (values_.size() != count) Begin(count);
    return values_.data();
  }
  // One step from ones, whose outcome is known. A sum that lacks a rank moves values 25 times as
  // far from it as int8 may.
  std::string Prove(size_t count) override {
    Begin(count);
    AllReduce(count);
    const auto n = static_cast<float>(size());
    std::string answer = "ok";
    for (size_t i = 0; i < count && answer == "ok"; ++i) {
      const float own = 1e-5f * static_cast<float>(i % 1009);
      const float sum = n * (0.01f + own) + 1e-5f * n * (n - 1) / 2;
      const float expected = 1.0f - 0.01f * sum;
      if (!(std::abs(values_[i] - expected) <= 2e-6f * n)) answer = Wrong(values_[i], i);
    }
    Begin(count);
    return answer;
  }
  void Barrier() override {
    Check(stream_.Run([](Communicator& group) { return group.Barrier(Soon()); }));
  }
  void AllReduce(size_t count) override {
    std::vector<tutti::comm::Stream::Ticket> tickets;
    for (size_t bucket = 0; bucket < feedback_.size(); ++bucket) {
      ComputeGradients(bucket);
      tickets.push_back(
          stream_.Issue([this, bucket](Communicator& group) { return Reduce(group, bucket); }));
    }
    for (size_t bucket = 0; bucket < feedback_.size(); ++bucket) {
      Check(stream_.Wait(tickets[bucket]));
      Update(bucket);
    }
  }

 private:
  void Begin(size_t count) {
    values_.assign(count, 1.0f);
    gradients_.assign(count, 0.0f);
    momenta_.assign(count, 0.0f);
    // As the trainer cuts a model (runtime/parallel/flat_model.h): an eighth each, between 64 KiB
    // and 25 MiB.
    bucket_ = std::clamp<size_t>(count / 8, (64 << 10) / sizeof(float), (25 << 20) / sizeof(float));
    feedback_ = std::vector<tutti::comm::ErrorFeedback>((count + bucket_ - 1) / bucket_);
  }

  size_t End(size_t bucket) const { return std::min(values_.size(), (bucket + 1) * bucket_); }

  void ComputeGradients(size_t bucket) {
    for (size_t i = bucket * bucket_; i < End(bucket); ++i) {
      gradients_[i] = 0.01f * values_[i] + 1e-5f * static_cast<float>(i % 1009 + rank());
    }
  }
  absl::Status Reduce(Communicator& group, size_t bucket) {
    const size_t begin = bucket * bucket_;
    const std::span<float> part(&gradients_[begin], End(bucket) - begin);
    if (compressed_) return compressed_->Run(group, part, kSum, &feedback_[bucket], Soon());
    return group.AllReduce(part.data(), part.size(), kFloat32, kSum, Soon());
  }
  void Update(size_t bucket) {
    for (size_t i = bucket * bucket_; i < End(bucket); ++i) {
      momenta_[i] = 0.9f * momenta_[i] + gradients_[i];
      values_[i] -= 0.01f * momenta_[i];
    }
  }

  size_t bucket_ = 0;  // values
  Values values_, gradients_, momenta_;
  std::vector<tutti::comm::ErrorFeedback> feedback_;  // per bucket
  std::optional<tutti::comm::CompressedAllReduce> compressed_;
  tutti::comm::Stream stream_;  // its thread works on all above
};

std::optional<Encoding> EncodingOf(const std::string& name) {
  if (name == "fp16") return Encoding::kFloat16;
  if (name == "bf16") return Encoding::kBFloat16;
  if (name == "int8") return Encoding::kInt8;
  if (name != "none") Fail("no compression \"" + name + "\"");
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  std::unique_ptr<Contender> contender;
  const std::string kind = argc > 2 ? argv[2] : "";
  if (argc == 2) contender = std::make_unique<Plain>(Join(), false);
  if (argc == 3 && kind == "shared") contender = std::make_unique<Plain>(Join(), true);
  if (argc == 4 && kind == "step") {
    contender = std::make_unique<Step>(Join(), EncodingOf(argv[3]));
  }
  if (contender == nullptr) Fail("usage: tutti_rank CONTROL_SOCKET [shared | step COMPRESSION]");
  tutti::benchmark::RankProgram(argv[1], *contender).ServeUntilQuit();
  return 0;
}

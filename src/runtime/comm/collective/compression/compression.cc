#include "runtime/comm/collective/compression/compression.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/comm/collective/chunks.h"

namespace tutti::comm {

absl::Status CompressedAllReduce::Run(Communicator& group, std::span<float> data, ReduceOp op,
                                      ErrorFeedback* feedback, base::Deadline deadline) {
  if (op != ReduceOp::kSum && op != ReduceOp::kMean) {
    return absl::InvalidArgumentError("only sums and means can be reduced in fewer bits");
  }
  if (group.size() == 1 || data.empty()) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(FormLevels(group, deadline));
  std::span<float> residual;
  if (feedback != nullptr) residual = feedback->Residual(data.size());
  TUTTI_RETURN_IF_ERROR(RunLevels(group, data, residual, deadline));
  if (op == ReduceOp::kMean) {
    for (float& value : data) value /= static_cast<float>(group.size());
  }
  return absl::OkStatus();
}

absl::Status CompressedAllReduce::FormLevels(Communicator& group, base::Deadline deadline) {
  if (formed_) return absl::OkStatus();
  const Placement place = group.placement();
  if (place.node_count > 1 && place.local_size > 1 && place.homogeneous) {
    std::vector<int> nodes(static_cast<size_t>(group.size()));
    TUTTI_RETURN_IF_ERROR(group.AllGather(&place.node_rank, sizeof(int), nodes.data(), deadline));
    std::vector<int> here, alike, seen(static_cast<size_t>(place.node_count));
    for (int rank = 0; rank < group.size(); ++rank) {
      const int node = nodes[static_cast<size_t>(rank)];
      if (node == place.node_rank) here.push_back(rank);
      if (seen[static_cast<size_t>(node)]++ == place.local_rank) alike.push_back(rank);
    }
    TUTTI_ASSIGN_OR_RETURN(node_, group.NewGroup(here, deadline));
    TUTTI_ASSIGN_OR_RETURN(across_, group.NewGroup(alike, deadline));
  }
  formed_ = true;
  return absl::OkStatus();
}

std::vector<size_t> CompressedAllReduce::Shards(size_t count) const {
  const size_t shards = node_ == nullptr ? 1 : static_cast<size_t>(node_->size());
  std::vector<size_t> begins;
  for (size_t i = 0; i <= shards; ++i) {
    begins.push_back(EvenCut(count, kEncodingBlock, shards, i));
  }
  return begins;
}

absl::Status CompressedAllReduce::RunLevels(Communicator& group, std::span<float> data,
                                            std::span<float> residual, base::Deadline deadline) {
  if (node_ == nullptr) return sum_.Run(group, data, residual, deadline);
  const std::vector<size_t> begins = Shards(data.size());
  std::vector<size_t> counts, bytes;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    counts.push_back(begins[i + 1] - begins[i]);
    bytes.push_back(counts.back() * sizeof(float));
  }
  const auto own = static_cast<size_t>(node_->rank());
  const std::span<float> shard = data.subspan(begins[own], counts[own]);
  if (!residual.empty()) residual = residual.subspan(begins[own], counts[own]);
  const auto all = [&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(node_->ReduceScatter(data.data(), counts, shard.data(),
                                               DataType::kFloat32, ReduceOp::kSum, deadline));
    TUTTI_RETURN_IF_ERROR(sum_.Run(*across_, shard, residual, deadline));
    return node_->AllGatherV(shard.data(), bytes, data.data(), deadline);
  };
  absl::Status status = all();
  if (status.ok()) return status;
  // Whom a subgroup lost is known there by another number, and there alone: the group's own
  // judgement is what all ranks tell.
  TUTTI_RETURN_IF_ERROR(group.Barrier(deadline));
  return status;
}

absl::Status CompressedAllReduce::Settle(Communicator& group, ErrorFeedback& feedback,
                                         std::span<float> total, base::Deadline deadline) {
  const std::span<float> residual = feedback.Residual(total.size());
  std::copy(residual.begin(), residual.end(), total.begin());
  TUTTI_RETURN_IF_ERROR(
      group.AllReduce(total.data(), total.size(), DataType::kFloat32, ReduceOp::kSum, deadline));
  return Restore(group, feedback, total, deadline);
}

absl::Status CompressedAllReduce::Restore(Communicator& group, ErrorFeedback& feedback,
                                          std::span<const float> total, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(FormLevels(group, deadline));
  feedback.Clear();
  const std::span<float> residual = feedback.Residual(total.size());
  const std::vector<size_t> begins = Shards(total.size());
  const Communicator& summing = across_ == nullptr ? group : *across_;
  const auto own = across_ == nullptr ? 0 : static_cast<size_t>(node_->rank());
  EncodedSum::ForEachPartOf(summing.rank(), summing.size(), begins[own + 1] - begins[own],
                            [&](size_t begin, size_t end) {
                              for (size_t i = begins[own] + begin; i < begins[own] + end; ++i) {
                                residual[i] = total[i];
                              }
                            });
  return absl::OkStatus();
}

}  // namespace tutti::comm

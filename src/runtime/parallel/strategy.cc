#include "runtime/parallel/strategy.h"

#include "base/status.h"
#include "runtime/parallel/collectives.h"

namespace tutti::parallel {
namespace {

absl::Status BroadcastOver(comm::Stream& stream, const torch::Tensor& tensor,
                           base::Deadline deadline) {
  const torch::Tensor host = tensor.cpu();  // itself, if it is there
  TUTTI_RETURN_IF_ERROR(stream.Run(BroadcastOf(host, deadline)));
  torch::NoGradGuard no_grad;
  if (!tensor.is_cpu() && stream.rank() != 0) tensor.copy_(host);
  return absl::OkStatus();
}

}  // namespace

absl::Status Strategy::SumOverRanks(std::span<double> values, base::Deadline deadline) {
  return ranks().Run(SumOf(values.data(), values.size(), comm::DataType::kFloat64, deadline));
}

absl::Status Strategy::Broadcast(const torch::Tensor& tensor, base::Deadline deadline) {
  return BroadcastOver(ranks(), tensor, deadline);
}

absl::Status Strategy::BroadcastToReplicas(const torch::Tensor& tensor, base::Deadline deadline) {
  return BroadcastOver(replicas(), tensor, deadline);
}

}  // namespace tutti::parallel

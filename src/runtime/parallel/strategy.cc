#include "runtime/parallel/strategy.h"

#include "base/status.h"
#include "runtime/parallel/collectives.h"

namespace tutti::parallel {

std::vector<Batch> Batch::Split(int64_t count) const {
  std::vector<Batch> parts;
  for (torch::Tensor& part : targets.tensor_split(count)) parts.push_back({{}, std::move(part)});
  for (const torch::Tensor& input : inputs) {
    const std::vector<torch::Tensor> split = input.tensor_split(count);
    for (size_t i = 0; i < parts.size(); ++i) parts[i].inputs.push_back(split[i]);
  }
  return parts;
}

std::vector<torch::Tensor> OnDevice(const std::vector<torch::Tensor>& tensors,
                                    torch::Device device) {
  std::vector<torch::Tensor> there;
  for (const torch::Tensor& tensor : tensors) there.push_back(tensor.to(device));
  return there;
}

absl::Status Strategy::BroadcastOver(comm::Stream& group, const torch::Tensor& tensor,
                                     base::Deadline deadline) {
  const torch::Tensor host = tensor.cpu();  // itself, if it is there
  TUTTI_RETURN_IF_ERROR(group.Run(BroadcastOf(host, deadline)));
  torch::NoGradGuard no_grad;
  if (!tensor.is_cpu() && group.rank() != 0) tensor.copy_(host);
  return absl::OkStatus();
}

absl::Status Strategy::SumOverRanks(std::span<double> values, base::Deadline deadline) {
  return ranks().Run(SumOf(values.data(), values.size(), comm::DataType::kFloat64, deadline));
}

absl::Status Strategy::SumOverRanks(std::span<double> values,
                                    const std::vector<torch::Tensor>& tensors, double scale,
                                    base::Deadline deadline) {
  torch::NoGradGuard no_grad;
  const auto count = static_cast<int64_t>(values.size());
  std::vector<torch::Tensor> parts = {torch::from_blob(values.data(), {count}, torch::kFloat64)};
  for (const torch::Tensor& each : tensors) {
    parts.push_back(each.to(torch::kFloat64).flatten().mul(scale));
  }
  const torch::Tensor sums = torch::cat(parts);
  TUTTI_RETURN_IF_ERROR(
      SumOverRanks({sums.mutable_data_ptr<double>(), static_cast<size_t>(sums.numel())}, deadline));
  parts[0].copy_(sums.narrow(0, 0, count));
  int64_t at = count;
  for (const torch::Tensor& each : tensors) {
    each.copy_(sums.narrow(0, at, each.numel()).view(each.sizes()));
    at += each.numel();
  }
  return absl::OkStatus();
}

absl::Status Strategy::Broadcast(const torch::Tensor& tensor, base::Deadline deadline) {
  return BroadcastOver(ranks(), tensor, deadline);
}

absl::Status Strategy::Send(const torch::Tensor& tensor, int to, base::Deadline deadline) {
  const torch::Tensor dense = tensor.detach().cpu().contiguous();
  return ranks().Run([&](comm::Communicator& group) {
    return group.Send(dense.const_data_ptr(), dense.nbytes(), to, deadline);
  });
}

absl::Status Strategy::Receive(torch::Tensor tensor, int from, base::Deadline deadline) {
  const bool as_it_lies = tensor.is_cpu() && tensor.is_contiguous();
  const torch::Tensor dense =
      as_it_lies ? tensor : torch::empty(tensor.sizes(), tensor.scalar_type());
  TUTTI_RETURN_IF_ERROR(ranks().Run([&](comm::Communicator& group) {
    return group.Receive(dense.mutable_data_ptr(), dense.nbytes(), from, deadline);
  }));
  torch::NoGradGuard no_grad;
  if (!as_it_lies) tensor.copy_(dense);
  return absl::OkStatus();
}

}  // namespace tutti::parallel

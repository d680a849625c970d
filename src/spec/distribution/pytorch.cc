// Ranks as torchrun starts them.
#include "spec/types/job_distribution.h"

namespace tutti::spec {
namespace {

absl::string_view TcpOfPyTorch(bool has_gpus) {
  if (has_gpus) return "";  // NCCL
  return "PyTorch's gloo, which ranks without GPUs take, talks over TCP past it; nccl and "
         "Horovod, which is tutti's, use it";
}

}  // namespace

extern const DistributionDriver kPyTorch;
const DistributionDriver kPyTorch = {
    .type = "pytorch", .may_be_lightning = true, .talks_over_tcp = TcpOfPyTorch};

}  // namespace tutti::spec

// Warns of jobs of several nodes that leave RDMA (InfiniBand, RoCE) unused. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "spec/types/job.h"

namespace tutti::service {

// `ports`: of this machine (base/machine/rdma_ports.h), as which the nodes of its clusters are
// taken to be. Adds a warning for each job, or job below it, of more than one node of a cluster
// whose processes talk over TCP all the same: PyTorch's without GPUs, which have gloo, TensorFlow's
// and Ray's. Not where the environment has Horovod, which is tutti's and takes UCX by itself, nor
// for MPI, which chooses as it starts and by what its libraries were built with, which nothing here
// knows, nor for virtual nodes, which have no network between them. docs/environments.md tells
// users of both limits.
void WarnOfUnusedRdma(const spec::JobSpec& job, const std::vector<std::string>& ports,
                      std::vector<std::string>& warnings);

}  // namespace tutti::service

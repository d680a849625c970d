// Tells whether UCX can send by the RDMA (InfiniBand, RoCE) that this machine has. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/machine/rdma_ports.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

// Returns whether the rank leaves the transport to tutti and needs no TLS, which goes over TCP.
bool MayUseRdma(const Hello& hello);

// Returns OK if UCX can send by one of them. NotFound: there is none; FailedPrecondition: there is,
// with its name, and why UCX cannot. Takes some 20 ms where there is one.
absl::Status CheckRdma(const std::filesystem::path& devices = base::kRdmaDevices);

// Returns why RDMA that a rank has is not used between nodes, in a sentence for a warning, or "".
// `own`: of CheckRdma on the machine of ranks[0].
std::string UnusedRdma(const std::vector<Hello>& ranks, const absl::Status& own);

}  // namespace tutti::comm

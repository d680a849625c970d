#include "runtime/parallel/gpu_sum.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/comm/collective/nccl/nccl_group.h"
#include "runtime/device/pci_address.h"
#include "runtime/parallel/gpu_input.h"

namespace tutti::parallel {
namespace {

using torch::Tensor;

constexpr absl::Duration kConnect = absl::Minutes(1);  // NCCL's ranks to each other, at most
constexpr absl::Duration kBetweenLooks = absl::Microseconds(20);

c10::impl::VirtualGuardImpl Guard() { return c10::impl::VirtualGuardImpl(torch::kCUDA); }

class NcclSum final : public GpuSum {
 public:
  NcclSum(std::unique_ptr<comm::NcclGroup> group, torch::Device device)
      : group_(std::move(group)), device_(device) {}

  absl::Status Add(const std::vector<Tensor>& tensors, base::Deadline deadline) override {
    const auto stream = Guard().getStream(device_).native_handle();
    return group_->Together(
        [&]() -> absl::Status {
          for (const Tensor& tensor : tensors) {
            void* const data = tensor.mutable_data_ptr();
            TUTTI_RETURN_IF_ERROR(group_->AllReduce(data, data, static_cast<size_t>(tensor.numel()),
                                                    comm::DataType::kFloat32, comm::ReduceOp::kSum,
                                                    stream, deadline));
          }
          return absl::OkStatus();
        },
        deadline);
  }
  absl::Status Await(c10::Event& event, const char* what, base::Deadline deadline) override {
    const auto come = [&] { return event.query(); };
    while (!come()) {
      TUTTI_RETURN_IF_ERROR(base::Annotate(group_->Look(come, deadline),
                                           absl::StrCat("while the GPU had to ", what)));
      absl::SleepFor(kBetweenLooks);
    }
    return absl::OkStatus();
  }
  bool waits() const override { return false; }

 private:
  const std::unique_ptr<comm::NcclGroup> group_;
  const torch::Device device_;
};

class HostSum final : public GpuSum {
 public:
  explicit HostSum(comm::Stream& stream) : stream_(stream) {}

  absl::Status Add(const std::vector<Tensor>& tensors, base::Deadline deadline) override {
    comm::Stream::Ticket last = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor host = HostOf(i, tensors[i]);
      host.copy_(tensors[i]);
      last = stream_.Issue([host, deadline](comm::Communicator& communicator) {
        return communicator.AllReduce(host.mutable_data_ptr(), static_cast<size_t>(host.numel()),
                                      comm::DataType::kFloat32, comm::ReduceOp::kSum, deadline);
      });
    }
    TUTTI_RETURN_IF_ERROR(stream_.Wait(last));
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].copy_(host_[i], /*non_blocking=*/true);
    }
    return absl::OkStatus();
  }
  absl::Status Await(c10::Event& event, const char* what, base::Deadline deadline) override {
    return WaitFor(event, what, deadline);
  }
  bool waits() const override { return true; }

 private:
  const Tensor& HostOf(size_t i, const Tensor& tensor) {
    if (host_.size() <= i) host_.resize(i + 1);
    if (!host_[i].defined() || host_[i].numel() != tensor.numel()) {
      host_[i] = torch::zeros({tensor.numel()}, torch::device(torch::kCPU).pinned_memory(true));
    }
    return host_[i];
  }

  comm::Stream& stream_;
  std::vector<Tensor> host_;
};

// What a rank tells the others of itself, as bytes.
struct Seat {
  std::array<char, 192> host;  // as NCCL tells hosts apart
  std::array<char, 32> gpu;    // its place on the bus
  bool has_nccl;

  bool operator==(const Seat& other) const { return host == other.host && gpu == other.gpu; }
};

std::string ThisHost() {
  const char* const given = std::getenv("NCCL_HOSTID");
  if (given != nullptr && *given != '\0') return given;
  std::array<char, 65> name = {};
  ::gethostname(name.data(), name.size() - 1);
  const auto boot = base::ReadFile("/proc/sys/kernel/random/boot_id");
  return absl::StrCat(name.data(), " ", boot.value_or(""));
}

Seat OwnSeat(torch::Device device, bool has_nccl) {
  Seat seat = {};
  const auto put = [](const std::string& text, auto& into) {
    std::copy_n(text.begin(), std::min(text.size(), into.size()), into.begin());
  };
  put(ThisHost(), seat.host);
  put(device::PciAddress(device.index()), seat.gpu);
  seat.has_nccl = has_nccl;
  return seat;
}

// Why these ranks cannot have NCCL; empty, on all of them: they can.
std::string WhyNot(const std::vector<Seat>& seats, const absl::Status& own_library) {
  for (size_t rank = 0; rank < seats.size(); ++rank) {
    if (!seats[rank].has_nccl) {
      return own_library.ok() ? absl::StrCat("rank ", rank, " has no NCCL")
                              : std::string(own_library.message());
    }
    for (size_t other = 0; other < rank; ++other) {
      if (seats[other] == seats[rank]) {
        return absl::StrCat("ranks ", other, " and ", rank, " share a GPU");
      }
    }
  }
  return "";
}

struct Connection {
  std::unique_ptr<comm::NcclGroup> group;
  std::string why_not;
};

// On the stream's thread.
absl::StatusOr<Connection> Connect(comm::Communicator& ranks, torch::Device device,
                                   base::Deadline deadline) {
  Guard().setDevice(device);
  const auto library = comm::NcclLibrary::Load();
  const Seat own = OwnSeat(device, library.ok());
  std::vector<Seat> seats(static_cast<size_t>(ranks.size()));
  TUTTI_RETURN_IF_ERROR(ranks.AllGather(&own, sizeof(own), seats.data(), deadline));
  Connection made;
  made.why_not = WhyNot(seats, library.status());
  if (!made.why_not.empty()) return made;
  // Not all the time that there is: host memory may have to do.
  auto group = comm::NcclGroup::Create(
      ranks, *library, base::Deadline::After(std::min(kConnect, deadline.Remaining() / 2)));
  if (!group.ok() && comm::LostRank(group.status()).has_value()) return group.status();
  int32_t all_can = group.ok() ? 1 : 0;
  TUTTI_RETURN_IF_ERROR(
      ranks.AllReduce(&all_can, 1, comm::DataType::kInt32, comm::ReduceOp::kMin, deadline));
  if (all_can == 1) {
    made.group = *std::move(group);
  } else {
    made.why_not =
        group.ok() ? "NCCL could not connect some rank" : std::string(group.status().message());
  }
  return made;
}

}  // namespace

absl::StatusOr<GpuSumChoice> MakeGpuSum(comm::Stream& stream, torch::Device device,
                                        base::Deadline deadline) {
  Connection made;
  TUTTI_RETURN_IF_ERROR(stream.Run([&](comm::Communicator& ranks) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(made, Connect(ranks, device, deadline));
    return absl::OkStatus();
  }));
  if (made.group != nullptr) {
    return GpuSumChoice{std::make_unique<NcclSum>(std::move(made.group), device), ""};
  }
  return GpuSumChoice{std::make_unique<HostSum>(stream), made.why_not};
}

}  // namespace tutti::parallel

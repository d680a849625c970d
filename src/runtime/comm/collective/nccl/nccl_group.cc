#include "runtime/comm/collective/nccl/nccl_group.h"

#include <poll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/rendezvous/control.h"

namespace tutti::comm {
namespace {

// NCCL has nothing to sleep on. The first looks come at once, for short work.
void Pause(int looks) {
  if (looks > 100) ::poll(nullptr, 0, 1);
}

constexpr absl::Duration kGrace = absl::Milliseconds(100);

bool ComesWithin(const std::function<bool()>& done, absl::Duration patience) {
  const auto deadline = base::Deadline::After(patience);
  for (int looks = 0; !done(); ++looks) {
    if (deadline.Expired()) return false;
    Pause(looks);
  }
  return true;
}

absl::StatusOr<nccl::Type> ToNccl(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return nccl::kFloat64;
    case DataType::kFloat32:
      return nccl::kFloat32;
    case DataType::kFloat16:
      return nccl::kFloat16;
    case DataType::kBFloat16:
      return nccl::kBfloat16;
    case DataType::kInt64:
      return nccl::kInt64;
    case DataType::kInt32:
      return nccl::kInt32;
    case DataType::kInt8:
      return nccl::kInt8;
    case DataType::kUint8:
    case DataType::kBool:
      return nccl::kUint8;
    default:
      return absl::UnimplementedError("NCCL does not reduce 16-bit integers");
  }
}

absl::StatusOr<nccl::Op> ToNccl(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return nccl::kSum;
    case ReduceOp::kMean:
      return nccl::kAverage;
    case ReduceOp::kMin:
      return nccl::kMin;
    case ReduceOp::kMax:
      return nccl::kMax;
    case ReduceOp::kProduct:
      return nccl::kProduct;
    default:
      return absl::UnimplementedError("NCCL does not know Adasum");
  }
}

}  // namespace

absl::StatusOr<NcclReduction> ToNccl(DataType type, ReduceOp op) {
  if (type == DataType::kBool) {
    // Or and and of bytes that are 0 or 1.
    if (op == ReduceOp::kSum || op == ReduceOp::kMax)
      return NcclReduction{nccl::kUint8, nccl::kMax};
    if (op == ReduceOp::kProduct || op == ReduceOp::kMin) {
      return NcclReduction{nccl::kUint8, nccl::kMin};
    }
    return absl::InvalidArgumentError("bools have neither mean nor Adasum");
  }
  NcclReduction reduction;
  TUTTI_ASSIGN_OR_RETURN(reduction.type, ToNccl(type));
  TUTTI_ASSIGN_OR_RETURN(reduction.op, ToNccl(op));
  return reduction;
}

NcclGroup::NcclGroup(Communicator& group, std::shared_ptr<const NcclLibrary> library)
    : group_(group), library_(std::move(library)) {}

absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(
    Communicator& group, std::shared_ptr<const NcclLibrary> library, base::Deadline deadline) {
  // A rank 0 that cannot make an id says so in its place: nobody waits for it in vain.
  struct Invitation {
    nccl::UniqueId id;
    nccl::Result result;
  };
  Invitation invitation = {};
  if (group.rank() == 0) invitation.result = library->call().GetUniqueId(&invitation.id);
  TUTTI_RETURN_IF_ERROR(group.Broadcast(&invitation, sizeof(invitation), 0, deadline));
  TUTTI_RETURN_IF_ERROR(library->ToStatus(invitation.result, "make an id on rank 0"));
  std::unique_ptr<NcclGroup> made(new NcclGroup(group, std::move(library)));
  TUTTI_RETURN_IF_ERROR(made->Start(invitation.id, deadline));
  return made;
}

absl::Status NcclGroup::Start(const nccl::UniqueId& id, base::Deadline deadline) {
  nccl::Config config;
  const nccl::Result result =
      library_->call().CommInitRankConfig(&comm_, group_.size(), id, group_.rank(), &config);
  return Settle(result, "connect", deadline);
}

NcclGroup::~NcclGroup() {
  if (comm_ == nullptr) return;
  // Destroying waits for work in progress: it is done, by contract, or of no use to anybody.
  const bool idle =
      Settle(library_->call().CommFinalize(comm_), "end", base::Deadline::After(absl::Seconds(5)))
          .ok();
  if (idle) library_->call().CommDestroy(comm_);
}

absl::Status NcclGroup::Fail(absl::Status error) {
  if (comm_ != nullptr) library_->call().CommAbort(std::exchange(comm_, nullptr));
  status_ = std::move(error);
  return status_;
}

absl::Status NcclGroup::Settle(nccl::Result result, const char* what, base::Deadline deadline) {
  const absl::Status status = library_->ToStatus(result, what);
  // A call that makes no sense by itself has not begun anything.
  if (absl::IsInvalidArgument(status)) return status;
  if (!status.ok()) return Fail(status);
  if (result == nccl::kSuccess) return absl::OkStatus();
  return Watch(what, deadline, [&] {
    nccl::Result now = nccl::kInProgress;
    return library_->call().CommGetAsyncError(comm_, &now) == nccl::kSuccess &&
           now == nccl::kSuccess;
  });
}

absl::Status NcclGroup::LookOnce(const char* what, base::Deadline deadline,
                                 const std::function<bool()>& done) {
  // The membership first: it names the rank for what NCCL only sees as a broken connection. A
  // rank that left in good order may have done its part: then what is missing comes at once.
  Control* const control = group_.control();
  const absl::Status alive = control == nullptr ? absl::OkStatus() : control->Check();
  if (!alive.ok()) return ComesWithin(done, kGrace) ? absl::OkStatus() : Fail(alive);
  nccl::Result error = nccl::kSuccess;
  const nccl::Result asked = library_->call().CommGetAsyncError(comm_, &error);
  const absl::Status status = library_->ToStatus(asked == nccl::kSuccess ? error : asked, what);
  if (!status.ok()) {
    const absl::Status cause =
        control == nullptr ? absl::OkStatus() : control->CheckWithin(control->peer_timeout());
    return Fail(cause.ok() ? status : cause);
  }
  if (deadline.Expired()) {
    return Fail(absl::DeadlineExceededError(
        absl::StrCat("NCCL did not ", what, " in time, and all ranks are in touch")));
  }
  return absl::OkStatus();
}

absl::Status NcclGroup::Watch(const char* what, base::Deadline deadline,
                              const std::function<bool()>& done) {
  for (int looks = 0; !done(); ++looks) {
    TUTTI_RETURN_IF_ERROR(LookOnce(what, deadline, done));
    Pause(looks);
  }
  return absl::OkStatus();
}

absl::Status NcclGroup::Await(const std::function<bool()>& done, base::Deadline deadline) {
  if (comm_ == nullptr) return status_;
  return Watch("finish", deadline, done);
}

absl::Status NcclGroup::Look(const std::function<bool()>& done, base::Deadline deadline) {
  if (comm_ == nullptr) return status_;
  return done() ? absl::OkStatus() : LookOnce("finish", deadline, done);
}

absl::Status NcclGroup::Together(const std::function<absl::Status()>& calls,
                                 base::Deadline deadline) {
  if (comm_ == nullptr) return status_;
  TUTTI_RETURN_IF_ERROR(library_->ToStatus(library_->call().GroupStart(), "begin a group"));
  const absl::Status called = calls();
  const nccl::Result ended = library_->call().GroupEnd();
  if (!called.ok() || comm_ == nullptr) return called.ok() ? status_ : called;
  return Settle(ended, "run a group", deadline);
}

// The mean of one rank is its sum. NCCL 2.28 leaves the last elements of some lengths out of it
// (fp32, 100003 of them): the pieces that it deals out to blocks do not add up to the whole.
absl::StatusOr<NcclReduction> NcclGroup::ReductionOf(DataType type, ReduceOp op) const {
  TUTTI_ASSIGN_OR_RETURN(NcclReduction how, ToNccl(type, op));
  if (group_.size() == 1 && how.op == nccl::kAverage) how.op = nccl::kSum;
  return how;
}

absl::Status NcclGroup::AllReduce(const void* input, void* output, size_t count, DataType type,
                                  ReduceOp op, nccl::CudaStream stream, base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(const NcclReduction how, ReductionOf(type, op));
  if (comm_ == nullptr) return status_;
  return Settle(library_->call().AllReduce(input, output, count, how.type, how.op, comm_, stream),
                "all-reduce", deadline);
}

absl::Status NcclGroup::ReduceScatter(const void* input, void* output, size_t count, DataType type,
                                      ReduceOp op, nccl::CudaStream stream,
                                      base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(const NcclReduction how, ReductionOf(type, op));
  if (comm_ == nullptr) return status_;
  return Settle(
      library_->call().ReduceScatter(input, output, count, how.type, how.op, comm_, stream),
      "reduce-scatter", deadline);
}

absl::Status NcclGroup::Broadcast(const void* input, void* output, size_t bytes, int root,
                                  nccl::CudaStream stream, base::Deadline deadline) {
  if (comm_ == nullptr) return status_;
  return Settle(library_->call().Broadcast(input, output, bytes, nccl::kInt8, root, comm_, stream),
                "broadcast", deadline);
}

absl::Status NcclGroup::AllGather(const void* input, size_t bytes, void* output,
                                  nccl::CudaStream stream, base::Deadline deadline) {
  if (comm_ == nullptr) return status_;
  return Settle(library_->call().AllGather(input, output, bytes, nccl::kInt8, comm_, stream),
                "all-gather", deadline);
}

absl::Status NcclGroup::Send(const void* data, size_t bytes, int to, nccl::CudaStream stream,
                             base::Deadline deadline) {
  if (comm_ == nullptr) return status_;
  return Settle(library_->call().Send(data, bytes, nccl::kInt8, to, comm_, stream), "send",
                deadline);
}

absl::Status NcclGroup::Receive(void* data, size_t bytes, int from, nccl::CudaStream stream,
                                base::Deadline deadline) {
  if (comm_ == nullptr) return status_;
  return Settle(library_->call().Recv(data, bytes, nccl::kInt8, from, comm_, stream), "receive",
                deadline);
}

}  // namespace tutti::comm

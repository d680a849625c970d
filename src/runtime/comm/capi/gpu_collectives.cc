// The C ABI's collectives on GPUs.
#include "runtime/comm/capi/boundary.h"
#include "runtime/comm/collective/nccl/nccl_group.h"

using namespace tutti::comm;        // NOLINT(google-build-using-namespace)
using namespace tutti::comm::capi;  // NOLINT(google-build-using-namespace)

namespace {

// The ranks agree first on whether all have NCCL: none shall wait for one that has not.
absl::Status BringUp(GroupHandle& held, tutti::base::Deadline deadline) {
  const auto library = NcclLibrary::Load();
  int32_t all_have_it = library.ok() ? 1 : 0;
  TUTTI_RETURN_IF_ERROR(
      held.group->AllReduce(&all_have_it, 1, DataType::kInt32, ReduceOp::kMin, deadline));
  TUTTI_RETURN_IF_ERROR(library.status());
  if (all_have_it == 0) return absl::FailedPreconditionError("NCCL is not there on every rank");
  TUTTI_ASSIGN_OR_RETURN(held.on_top.device, NcclGroup::Create(*held.group, *library, deadline));
  return absl::OkStatus();
}

template <typename Body>
tutti_comm_status OnDevice(tutti_comm_group group, double timeout, const Body& body) noexcept {
  return OnGroupHandle(group, [&](GroupHandle& held) -> absl::Status {
    const tutti::base::Deadline deadline = After(timeout);
    if (held.on_top.device == nullptr) TUTTI_RETURN_IF_ERROR(BringUp(held, deadline));
    return body(*held.on_top.device, deadline);
  });
}

}  // namespace

tutti_comm_status tutti_comm_device_all_reduce(tutti_comm_group group, const void* input,
                                               void* output, size_t count, tutti_comm_type type,
                                               tutti_comm_op op, void* stream, double timeout) {
  return OnDevice(group, timeout, [&](NcclGroup& nccl, auto deadline) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const DataType element, TypeOf(type));
    TUTTI_ASSIGN_OR_RETURN(const ReduceOp reduction, OpOf(op));
    return nccl.AllReduce(input, output, count, element, reduction, stream, deadline);
  });
}

tutti_comm_status tutti_comm_device_reduce_scatter(tutti_comm_group group, const void* input,
                                                   void* output, size_t count, tutti_comm_type type,
                                                   tutti_comm_op op, void* stream, double timeout) {
  return OnDevice(group, timeout, [&](NcclGroup& nccl, auto deadline) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const DataType element, TypeOf(type));
    TUTTI_ASSIGN_OR_RETURN(const ReduceOp reduction, OpOf(op));
    return nccl.ReduceScatter(input, output, count, element, reduction, stream, deadline);
  });
}

tutti_comm_status tutti_comm_device_broadcast(tutti_comm_group group, void* data, size_t bytes,
                                              int32_t root, void* stream, double timeout) {
  return OnDevice(group, timeout, [&](NcclGroup& nccl, auto deadline) {
    return nccl.Broadcast(data, data, bytes, root, stream, deadline);
  });
}

tutti_comm_status tutti_comm_device_all_gather(tutti_comm_group group, const void* input,
                                               size_t bytes, void* output, void* stream,
                                               double timeout) {
  return OnDevice(group, timeout, [&](NcclGroup& nccl, auto deadline) {
    return nccl.AllGather(input, bytes, output, stream, deadline);
  });
}

tutti_comm_status tutti_comm_device_send(tutti_comm_group group, const void* data, size_t bytes,
                                         int32_t to, void* stream, double timeout) {
  return OnDevice(group, timeout, [&](NcclGroup& nccl, auto deadline) {
    return nccl.Send(data, bytes, to, stream, deadline);
  });
}

tutti_comm_status tutti_comm_device_receive(tutti_comm_group group, void* data, size_t bytes,
                                            int32_t from, void* stream, double timeout) {
  return OnDevice(group, timeout, [&](NcclGroup& nccl, auto deadline) {
    return nccl.Receive(data, bytes, from, stream, deadline);
  });
}

tutti_comm_status tutti_comm_device_await(tutti_comm_group group, tutti_comm_query_callback done,
                                          void* context, double timeout) {
  return OnDevice(group, timeout, [&](NcclGroup& nccl, auto deadline) -> absl::Status {
    if (done == nullptr) return absl::InvalidArgumentError("done is null");
    return nccl.Await([&] { return done(context) != 0; }, deadline);
  });
}

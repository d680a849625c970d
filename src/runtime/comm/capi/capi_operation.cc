// The C ABI's operations: what is submitted to a session.
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/comm/capi/boundary.h"
#include "runtime/comm/collective/nccl/device_stream.h"
#include "runtime/comm/negotiation/negotiation.h"

namespace tutti::comm::capi {
namespace {

// What a handle of an operation stands for.
struct OperationHandle {
  std::shared_ptr<Operation> operation;
};

bool HasRows(Kind kind) { return kind == Kind::kAllGather || kind == Kind::kAllToAll; }

absl::Status AddTensor(const tutti_comm_tensor& tensor, Submission& submission) {
  Part part;
  TUTTI_ASSIGN_OR_RETURN(part.type, TypeOf(tensor.type));
  if (tensor.dimensions < 0 || tensor.dimensions > static_cast<int>(kMostDimensions)) {
    return absl::InvalidArgumentError(absl::StrCat(tensor.dimensions, " dimensions"));
  }
  if (tensor.dimensions > 0) TUTTI_RETURN_IF_ERROR(NotNull(tensor.shape, "a tensor's shape"));
  part.shape.assign(tensor.shape, tensor.shape + tensor.dimensions);
  if (HasRows(submission.request.kind) && tensor.dimensions > 0) {
    submission.rows.push_back(std::exchange(part.shape[0], 0));
  }
  submission.request.parts.push_back(std::move(part));
  submission.inputs.push_back(tensor.input);
  submission.outputs.push_back(tensor.output);
  return absl::OkStatus();
}

// Tensors lie in the array as far apart as the caller's header has them.
absl::Status AddTensors(const tutti_comm_request& c, Submission& submission) {
  constexpr size_t kFirstSize = offsetof(tutti_comm_tensor, type) + sizeof(tutti_comm_type);
  if (c.tensor_count == 0) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(NotNull(c.tensors, "tensors"));
  TUTTI_RETURN_IF_ERROR(CheckSize(c.tensor_size, kFirstSize, "tensor_size"));
  const char* const tensors = reinterpret_cast<const char*>(c.tensors);
  for (size_t i = 0; i < c.tensor_count; ++i) {
    tutti_comm_tensor tensor = {};
    TUTTI_RETURN_IF_ERROR(
        TakeFields(tensors + i * c.tensor_size, c.tensor_size, &tensor, sizeof(tensor)));
    TUTTI_RETURN_IF_ERROR(AddTensor(tensor, submission));
  }
  return absl::OkStatus();
}

// Splits that were not given: as many rows to each.
absl::Status AddSplits(const tutti_comm_request& c, const Negotiation& negotiation,
                       Submission& submission) {
  if (c.splits != nullptr) {
    submission.splits.assign(c.splits, c.splits + c.split_count);
    return absl::OkStatus();
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<int> ranks, negotiation.RanksOf(c.process_set));
  const int64_t count = static_cast<int64_t>(ranks.size());
  const int64_t rows = submission.rows.empty() ? 0 : submission.rows[0];
  if (rows % count != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(rows, " rows cannot be split evenly among ", count, " ranks"));
  }
  submission.splits.assign(ranks.size(), rows / count);
  return absl::OkStatus();
}

// How it goes between nodes, and what rounding has lost so far.
absl::Status AddWire(const tutti_comm_request& c, Submission& submission) {
  static_assert(static_cast<int>(Wire::kFloat16) == TUTTI_COMM_ENCODING_FLOAT16 + 1 &&
                static_cast<int>(Wire::kInt8) == TUTTI_COMM_ENCODING_INT8 + 1);
  if (c.encoded < 0 || c.encoded > TUTTI_COMM_ENCODING_INT8 + 1) {
    return absl::InvalidArgumentError(absl::StrCat("there is no encoding ", c.encoded - 1));
  }
  submission.request.wire = static_cast<Wire>(c.encoded);
  if (c.feedback == 0) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const auto feedback, Get<Feedback>(HandleKind::kFeedback, c.feedback));
  submission.feedback = std::shared_ptr<ErrorFeedback>(feedback, &feedback->kept);
  return absl::OkStatus();
}

// On which GPU it is.
absl::Status AddDevice(const tutti_comm_request& c, Submission& submission) {
  if (c.device < 0)
    return absl::InvalidArgumentError(absl::StrCat("there is no GPU ", c.device - 1));
  submission.device = c.device - 1;
  submission.ready = c.ready;
  submission.request.device = c.device > 0 && submission.request.kind != Kind::kJoin;
  return absl::OkStatus();
}

absl::StatusOr<Submission> FromC(const tutti_comm_request& c, const Negotiation& negotiation) {
  static_assert(static_cast<int>(Kind::kJoin) == TUTTI_COMM_JOIN &&
                static_cast<int>(Kind::kAllToAll) == TUTTI_COMM_ALL_TO_ALL);
  if (c.kind < 0 || c.kind > TUTTI_COMM_JOIN) {
    return absl::InvalidArgumentError(absl::StrCat("there is no kind ", c.kind));
  }
  Submission submission;
  Request& request = submission.request;
  request.kind = static_cast<Kind>(c.kind);
  request.set = c.process_set;
  if (c.name != nullptr) request.name = c.name;
  TUTTI_ASSIGN_OR_RETURN(request.op, OpOf(c.op));
  request.root = request.kind == Kind::kBroadcast ? c.root : 0;
  request.prescale = c.prescale;
  request.postscale = c.postscale;
  if (c.tensor_count > kMostParts) {
    return absl::InvalidArgumentError(absl::StrCat("a group of ", c.tensor_count, " tensors"));
  }
  TUTTI_RETURN_IF_ERROR(AddTensors(c, submission));
  TUTTI_RETURN_IF_ERROR(AddWire(c, submission));
  TUTTI_RETURN_IF_ERROR(AddDevice(c, submission));
  if (request.kind == Kind::kAllToAll) {
    TUTTI_RETURN_IF_ERROR(AddSplits(c, negotiation, submission));
  }
  if (c.allocate != nullptr) {
    submission.allocate = [call = c.allocate, context = c.context](
                              size_t part, const std::vector<int64_t>& shape, size_t bytes) {
      return call(context, part, shape.data(), static_cast<int32_t>(shape.size()), bytes);
    };
  }
  return submission;
}

absl::StatusOr<std::shared_ptr<Operation>> Find(tutti_comm_operation handle) {
  TUTTI_ASSIGN_OR_RETURN(const auto held, Get<OperationHandle>(HandleKind::kOperation, handle));
  return held->operation;
}

// Only what is done and OK has results.
absl::StatusOr<std::shared_ptr<Operation>> FindDone(tutti_comm_operation handle) {
  TUTTI_ASSIGN_OR_RETURN(std::shared_ptr<Operation> operation, Find(handle));
  if (operation->Done() && operation->status().ok()) return operation;
  return absl::FailedPreconditionError("the operation is not done, or has failed");
}

}  // namespace
}  // namespace tutti::comm::capi

using namespace tutti::comm;        // NOLINT(google-build-using-namespace)
using namespace tutti::comm::capi;  // NOLINT(google-build-using-namespace)

void tutti_comm_request_init(tutti_comm_request* request, size_t size) {
  tutti_comm_request whole = {};
  whole.prescale = 1;
  whole.postscale = 1;
  GiveDefaults(whole, request, size);
}

tutti_comm_status tutti_comm_submit(tutti_comm_session session, const tutti_comm_request* request,
                                    tutti_comm_operation* operation) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(operation, "operation"));
    TUTTI_ASSIGN_OR_RETURN(const auto negotiation, Get<Negotiation>(HandleKind::kSession, session));
    TUTTI_ASSIGN_OR_RETURN(const tutti_comm_request whole,
                           Whole(request, &tutti_comm_request_init));
    TUTTI_ASSIGN_OR_RETURN(Submission submission, FromC(whole, *negotiation));
    TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<Operation> submitted,
                           negotiation->Submit(std::move(submission)));
    const uint64_t handle = Handles::Global().Add(
        HandleKind::kOperation, std::make_shared<OperationHandle>(OperationHandle{submitted}));
    *operation = handle;
    if (whole.done != nullptr) {
      submitted->WhenDone(
          [call = whole.done, context = whole.context, handle] { call(context, handle); });
    }
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_operation_poll(tutti_comm_operation operation, int32_t* done) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(done, "done"));
    TUTTI_ASSIGN_OR_RETURN(const auto polled, Find(operation));
    *done = polled->Done() ? 1 : 0;
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_operation_wait(tutti_comm_operation operation, double timeout) {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const auto waited, Find(operation));
    return waited->Wait(After(timeout));
  });
}

tutti_comm_status tutti_comm_operation_wait_on_stream(tutti_comm_operation operation, void* stream,
                                                      double timeout) {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const auto waited, Find(operation));
    TUTTI_ASSIGN_OR_RETURN(const auto mark, waited->WaitIssued(After(timeout)));
    return mark == nullptr ? absl::OkStatus() : mark->Before(stream);
  });
}

tutti_comm_status tutti_comm_operation_release(tutti_comm_operation operation) {
  return Guard([&] { return Take<OperationHandle>(HandleKind::kOperation, operation).status(); });
}

tutti_comm_status tutti_comm_operation_output(tutti_comm_operation operation, size_t index,
                                              tutti_comm_output* output, size_t size) {
  return Guard([&]() -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const auto done, FindDone(operation));
    if (index >= done->outputs().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no output ", index, " of ", done->outputs().size()));
    }
    const Output& found = done->outputs()[index];
    const tutti_comm_output whole = {found.data, found.bytes, found.shape.data(),
                                     static_cast<int32_t>(found.shape.size()), 0};
    return Give(whole, output, size, "output");
  });
}

tutti_comm_status tutti_comm_operation_received(tutti_comm_operation operation,
                                                const int64_t** rows, size_t* count) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(rows, "rows"));
    TUTTI_RETURN_IF_ERROR(NotNull(count, "count"));
    TUTTI_ASSIGN_OR_RETURN(const auto done, FindDone(operation));
    *rows = done->received().data();
    *count = done->received().size();
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_operation_value(tutti_comm_operation operation, int64_t* value) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(value, "value"));
    TUTTI_ASSIGN_OR_RETURN(const auto done, FindDone(operation));
    *value = done->value();
    return absl::OkStatus();
  });
}

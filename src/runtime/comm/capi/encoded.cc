// The C ABI's all-reduce in fewer bits.
#include <memory>
#include <mutex>
#include <span>

#include "absl/strings/str_cat.h"
#include "runtime/comm/capi/boundary.h"

using namespace tutti::comm;        // NOLINT(google-build-using-namespace)
using namespace tutti::comm::capi;  // NOLINT(google-build-using-namespace)

namespace {

absl::StatusOr<CompressedAllReduce*> For(tutti_comm_encoding encoding, GroupHandle& held) {
  static_assert(static_cast<int>(Encoding::kFloat16) == TUTTI_COMM_ENCODING_FLOAT16 &&
                static_cast<int>(Encoding::kBFloat16) == TUTTI_COMM_ENCODING_BFLOAT16 &&
                static_cast<int>(Encoding::kInt8) == TUTTI_COMM_ENCODING_INT8);
  if (encoding < 0 || encoding > TUTTI_COMM_ENCODING_INT8) {
    return absl::InvalidArgumentError(absl::StrCat("there is no encoding ", encoding));
  }
  auto& made = held.on_top.encoded[encoding];
  if (made == nullptr)
    made = std::make_shared<CompressedAllReduce>(static_cast<Encoding>(encoding));
  return made.get();
}

absl::Status AllReduceEncoded(CompressedAllReduce& encoded, Communicator& group,
                              std::span<float> data, ReduceOp op, tutti_comm_feedback handle,
                              tutti::base::Deadline deadline) {
  if (handle == 0) return encoded.Run(group, data, op, nullptr, deadline);
  TUTTI_ASSIGN_OR_RETURN(const auto feedback, Get<Feedback>(HandleKind::kFeedback, handle));
  const std::unique_lock<std::mutex> lock(feedback->busy, std::try_to_lock);
  if (!lock.owns_lock()) {
    return absl::FailedPreconditionError("another thread's call has this feedback");
  }
  const absl::Status status = encoded.Run(group, data, op, &feedback->kept, deadline);
  if (!status.ok()) feedback->kept.Clear();  // it would be garbage
  return status;
}

}  // namespace

tutti_comm_status tutti_comm_feedback_open(tutti_comm_feedback* feedback) {
  return Guard([&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(NotNull(feedback, "feedback"));
    *feedback = Handles::Global().Add(HandleKind::kFeedback, std::make_shared<Feedback>());
    return absl::OkStatus();
  });
}

tutti_comm_status tutti_comm_feedback_close(tutti_comm_feedback feedback) {
  return Guard([&] { return Take<Feedback>(HandleKind::kFeedback, feedback).status(); });
}

tutti_comm_status tutti_comm_all_reduce_encoded(tutti_comm_group group, float* data, size_t count,
                                                tutti_comm_op op, tutti_comm_encoding encoding,
                                                tutti_comm_feedback feedback, double timeout) {
  return OnGroupHandle(group, [&](GroupHandle& held) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(const ReduceOp reduction, OpOf(op));
    if (count > 0) TUTTI_RETURN_IF_ERROR(NotNull(data, "data"));
    TUTTI_ASSIGN_OR_RETURN(CompressedAllReduce* const encoded, For(encoding, held));
    return AllReduceEncoded(*encoded, *held.group, {data, count}, reduction, feedback,
                            After(timeout));
  });
}

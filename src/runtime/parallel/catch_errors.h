// CatchErrors turns the exceptions by which libtorch and the models report errors into a status.
#pragma once

#include <c10/util/Exception.h>

#include <exception>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "runtime/comm/stream.h"
#include "runtime/models/layers/synchronized_batch_norm.h"

namespace tutti::parallel {

// Returns what `body` returns or throws. A lost rank is the reason rather than what fails because
// of it.
template <typename Result, typename Body>
absl::StatusOr<Result> CatchErrors(const comm::Stream& stream, const Body& body) {
  try {
    return body();
  } catch (const models::SumFailed& error) {
    return error.status;
  } catch (const c10::Error& error) {
    TUTTI_RETURN_IF_ERROR(stream.status());
    return absl::InternalError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    TUTTI_RETURN_IF_ERROR(stream.status());
    return absl::InternalError(error.what());
  }
}

}  // namespace tutti::parallel

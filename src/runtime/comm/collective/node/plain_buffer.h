// Allocates the shared buffer (shared_buffer.h) of a group without neighbours on its node: plain
// memory. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/comm/shared_buffer.h"

namespace tutti::comm {

// Allocates memory that nobody else reaches. InvalidArgument: 0 bytes.
absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocatePlain(size_t bytes);

}  // namespace tutti::comm

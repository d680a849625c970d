// NcclLibrary loads libnccl.so.2 when it is asked for. A machine without it is fine: Load says that
// it is not there and where it was looked for.
//
// Immutable, safe to share between threads. It stays loaded: NCCL keeps threads of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/collective/nccl/nccl_abi.h"

namespace tutti::comm {

class NcclLibrary {
 public:
  // Loads it; FailedPrecondition "NCCL is not there: ..." when it cannot be loaded or is older than
  // 2.14.
  static absl::StatusOr<std::shared_ptr<const NcclLibrary>> Load();
  static absl::StatusOr<std::shared_ptr<const NcclLibrary>> LoadFrom(const std::string& path);

  const nccl::Functions& call() const { return functions_; }
  const std::string& path() const { return path_; }
  int version() const { return version_; }  // 22304 is 2.23.4

  // Makes a status of it; kSuccess and kInProgress are OK.
  absl::Status ToStatus(nccl::Result result, absl::string_view what) const;

 private:
  NcclLibrary() = default;
  nccl::Functions functions_ = {};
  std::string path_;
  int version_ = 0;
};

// Returns where to look, in this order: `variable` (TUTTI_NCCL_LIBRARY) alone if it is not empty;
// what the process has loaded already or the system finds (LD_LIBRARY_PATH); what pip installed
// beside libtorch, given the path of one of libtorch's own libraries or "".
std::vector<std::string> NcclCandidates(const std::string& variable,
                                        const std::string& torch_library);

}  // namespace tutti::comm

#include "runtime/comm/collective/nccl/nccl_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/symbol.h"

namespace tutti::comm {
namespace {

constexpr char kName[] = "libnccl.so.2";
constexpr int kOldest = 21400;  // the first whose calls can be made to return at once

absl::Status NotThere(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("NCCL is not there: ", why));
}

// One of libtorch's libraries, if the process has loaded any.
std::string TorchLibrary() {
  std::string found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* result) {
        const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (path.find("/libc10.so") == std::string::npos) return 0;
        *static_cast<std::string*>(result) = path;
        return 1;
      },
      &found);
  return found;
}

absl::StatusOr<nccl::Functions> Resolve(void* library) {
  nccl::Functions f = {};
  base::Symbols symbols(library);
  symbols.Find(f.GetVersion, "ncclGetVersion");
  symbols.Find(f.GetUniqueId, "ncclGetUniqueId");
  symbols.Find(f.CommInitRankConfig, "ncclCommInitRankConfig");
  symbols.Find(f.CommAbort, "ncclCommAbort");
  symbols.Find(f.CommDestroy, "ncclCommDestroy");
  symbols.Find(f.CommFinalize, "ncclCommFinalize");
  symbols.Find(f.CommGetAsyncError, "ncclCommGetAsyncError");
  symbols.Find(f.GetErrorString, "ncclGetErrorString");
  symbols.Find(f.GetLastError, "ncclGetLastError");
  symbols.Find(f.AllReduce, "ncclAllReduce");
  symbols.Find(f.Broadcast, "ncclBroadcast");
  symbols.Find(f.AllGather, "ncclAllGather");
  symbols.Find(f.ReduceScatter, "ncclReduceScatter");
  symbols.Find(f.Send, "ncclSend");
  symbols.Find(f.Recv, "ncclRecv");
  symbols.Find(f.GroupStart, "ncclGroupStart");
  symbols.Find(f.GroupEnd, "ncclGroupEnd");
  if (!symbols.missing().empty()) return NotThere(absl::StrCat("it has no ", symbols.missing()));
  return f;
}

}  // namespace

std::vector<std::string> NcclCandidates(const std::string& variable,
                                        const std::string& torch_library) {
  if (!variable.empty()) return {variable};
  std::vector<std::string> candidates = {kName};
  if (!torch_library.empty()) {
    // .../site-packages/torch/lib/libc10.so and .../site-packages/nvidia/nccl/lib/libnccl.so.2
    const std::filesystem::path folder = std::filesystem::path(torch_library).parent_path();
    candidates.push_back(folder / kName);
    candidates.push_back(folder.parent_path().parent_path() / "nvidia" / "nccl" / "lib" / kName);
  }
  return candidates;
}

absl::StatusOr<std::shared_ptr<const NcclLibrary>> NcclLibrary::LoadFrom(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotThere(::dlerror());
  std::shared_ptr<NcclLibrary> loaded(new NcclLibrary());
  loaded->path_ = path;
  TUTTI_ASSIGN_OR_RETURN(loaded->functions_, Resolve(library));
  TUTTI_RETURN_IF_ERROR(
      loaded->ToStatus(loaded->functions_.GetVersion(&loaded->version_), "ask for its version"));
  if (loaded->version_ < kOldest) {
    return NotThere(absl::StrCat(path, " is version ", loaded->version_, ", older than 2.14"));
  }
  return std::shared_ptr<const NcclLibrary>(std::move(loaded));
}

absl::StatusOr<std::shared_ptr<const NcclLibrary>> NcclLibrary::Load() {
  const char* const variable = std::getenv("TUTTI_NCCL_LIBRARY");
  std::vector<std::string> faults;
  for (const std::string& path :
       NcclCandidates(variable == nullptr ? "" : variable, TorchLibrary())) {
    auto loaded = LoadFrom(path);
    if (loaded.ok()) return loaded;
    faults.push_back(std::string(loaded.status().message()));
  }
  return absl::FailedPreconditionError(absl::StrJoin(faults, "; "));
}

absl::Status NcclLibrary::ToStatus(nccl::Result result, absl::string_view what) const {
  if (result == nccl::kSuccess || result == nccl::kInProgress) return absl::OkStatus();
  std::string text = absl::StrCat("NCCL could not ", what, ": ", functions_.GetErrorString(result));
  // What the result alone leaves to NCCL's log: "Duplicate GPU detected : rank 0 and rank 1 ...".
  const char* const detail = functions_.GetLastError(nullptr);
  if (detail != nullptr && *detail != '\0') {
    absl::StrAppend(&text, ": ", absl::StripTrailingAsciiWhitespace(detail));
  }
  switch (result) {
    case nccl::kInvalidArgument:
    case nccl::kInvalidUsage:
      return absl::InvalidArgumentError(text);
    case nccl::kRemoteError:
    case nccl::kSystemError:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

}  // namespace tutti::comm

#ifdef TUTTI_HAS_UCX
#include "runtime/comm/transport/ucx_library.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace tutti::comm {
namespace {

absl::StatusOr<UcxLibrary> Load() {
  void* const handle = ::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("TUTTI_TRANSPORT=ucx, but UCX cannot be loaded: ", ::dlerror()));
  }
  UcxLibrary library;
  std::string missing;
#define TUTTI_UCX_FIND(name)                                                       \
  library.name = reinterpret_cast<decltype(library.name)>(::dlsym(handle, #name)); \
  if (library.name == nullptr) absl::StrAppend(&missing, " ", #name);
  TUTTI_UCX_FUNCTIONS(TUTTI_UCX_FIND)
#undef TUTTI_UCX_FIND
  if (missing.empty()) return library;
  return absl::FailedPreconditionError(absl::StrCat("UCX is another version: it lacks", missing));
}

}  // namespace

absl::StatusOr<const UcxLibrary*> LoadUcx() {
  static const absl::StatusOr<UcxLibrary> library = Load();  // stays to the process's end
  if (!library.ok()) return library.status();
  return &*library;
}

absl::Status UcxLibrary::Check(ucs_status_t status, absl::string_view what) const {
  if (status == UCS_OK) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(what, ": ", ucs_status_string(status)));
}

}  // namespace tutti::comm
#endif

#include "platform/launch/outputs/manifest_place.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "platform/storage/input_request.h"

namespace tutti::launch {
namespace {

// Also of a folder that is mounted from elsewhere in the same file system. False if it is not
// known.
bool IsOfOneMount(const std::string& a, const std::string& b) {
  struct statx one = {}, other = {};
  if (::statx(AT_FDCWD, a.c_str(), 0, STATX_MNT_ID, &one) != 0) return false;
  if (::statx(AT_FDCWD, b.c_str(), 0, STATX_MNT_ID, &other) != 0) return false;
  if ((one.stx_mask & other.stx_mask & STATX_MNT_ID) == 0) {
    return one.stx_dev_major == other.stx_dev_major && one.stx_dev_minor == other.stx_dev_minor;
  }
  return one.stx_mnt_id == other.stx_mnt_id;
}

}  // namespace

std::optional<ManifestPlace> ManifestBeside(const spec::DataPlace& place, const std::string& output,
                                            int node) {
  const std::string ending = absl::StrCat(".stored.node-", node, ".json");
  const bool is_local = place.kind == spec::StoreKind::kLocal;
  const bool is_all = is_local ? place.path == place.root : place.path.empty();
  if (is_all) return ManifestPlace{place.path, absl::StrCat(output, ending)};
  const std::string folder = storage::FolderOf(place.path);
  const bool is_bounded = !is_local || !place.root.empty();
  if (!is_bounded && !IsOfOneMount(folder, place.path)) return std::nullopt;
  return ManifestPlace{folder, absl::StrCat(place.path.substr(place.path.rfind('/') + 1), ending)};
}

}  // namespace tutti::launch

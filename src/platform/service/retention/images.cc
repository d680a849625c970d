#include "platform/service/retention/images.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/container/kept_images.h"
#include "platform/container/make_image.h"

namespace tutti::service {
namespace {

using container::KeptImage;

// The names, in podman, of images that jobs use or wait for.
std::set<std::string> NamesOf(const InUse& in_use) {
  std::set<std::string> names;
  for (const auto& [key, image] : in_use.images) {
    if (image.context.empty()) {
      names.insert(container::FullReference(image.reference));
      continue;
    }
    const auto name = container::NameOfBuild(image);  // none if its folder is gone
    if (name.ok()) names.insert(*name);
  }
  return names;
}

}  // namespace

// All virtual nodes of this machine have one storage.
std::string Images::PlaceOf(const std::string& host) const {
  return place_.empty() ? "" : absl::StrCat(place_, "/", host);
}

std::vector<Kept> Images::List(const InUse& in_use) const {
  std::map<std::pair<std::string, std::string>, Kept> kept;  // by place and name
  const std::vector<KeptImage> records = container::ListImages(folder_);
  if (records.empty()) return {};
  const std::set<std::string> names = NamesOf(in_use);
  const absl::Time used_since = in_use.UsedSince(place_, state_.clock->Now());
  for (const KeptImage& record : records) {
    Kept& one = kept[{PlaceOf(record.host), record.name}];
    const bool is_first = one.name.empty();
    one.kind = KeptKind::kImages;
    one.name = record.name;
    one.place = PlaceOf(record.host);
    one.bytes = std::max(one.bytes, record.bytes);
    one.last_use = is_first ? record.last_use : std::max(one.last_use, record.last_use);
    one.in_use |=
        one.last_use >= used_since || names.contains(record.name) || names.contains(record.base);
  }
  std::vector<Kept> list;
  list.reserve(kept.size());
  for (auto& [where, one] : kept) list.push_back(std::move(one));
  return list;
}

absl::StatusOr<bool> Images::Remove(const Kept& kept) const {
  std::vector<KeptImage> records = container::ListImages(folder_);
  std::erase_if(records, [&](const KeptImage& record) {
    return record.name != kept.name || PlaceOf(record.host) != kept.place;
  });
  const auto used_later = [&](const KeptImage& record) { return record.last_use > kept.last_use; };
  if (records.empty() || std::any_of(records.begin(), records.end(), used_later)) return false;
  if (place_.empty()) return container::RemoveImage(folder_, records, state_.ending);
  return container::MarkImage(folder_, records.front());
}

}  // namespace tutti::service

#include "spec/types/data_place.h"

#include "absl/strings/str_cat.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {

std::string StoreOf(const DataPlace& place) {
  return absl::StrCat(StoreName(place.kind), " ", place.account, place.account.empty() ? "" : "/",
                      place.container, place.endpoint.empty() ? "" : " at ", place.endpoint);
}

}  // namespace tutti::spec

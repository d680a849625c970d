#include "platform/service/jobs/engines.h"

#include "absl/strings/str_cat.h"

namespace tutti::service {

engine::Engine* Engines::Of(absl::string_view compute) const {
  if (compute == "local") return local;
  const auto found = clusters.find(compute);
  return found == clusters.end() ? nullptr : found->second;
}

std::string Engines::WhyOutOfReach(const std::string& compute) const {
  if (const engine::Engine* const engine = Of(compute)) {
    const std::string why = engine->WhyOutOfReach();
    return why.empty() ? "" : absl::StrCat("compute ", compute, " cannot be used: ", why);
  }
  return absl::StrCat("site.yml has no compute ", compute,
                      ": put it back and start the service anew");
}

}  // namespace tutti::service

#include "platform/service/attempt/launcher_token.h"

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tutti::service {

std::string LauncherToken(absl::string_view key, absl::string_view allocation) {
  if (key.empty()) return "";
  return base::Hex(base::HmacSha256(key, absl::StrCat("launcher of ", allocation)));
}

std::string MetricsToken(absl::string_view key) {
  // No allocation's: those are "launcher of …".
  return key.empty() ? "" : base::Hex(base::HmacSha256(key, "metrics"));
}

std::string RunToken(absl::string_view key, absl::string_view run) {
  if (key.empty() || run.empty()) return "";
  return absl::StrCat(run, ".", base::Hex(base::HmacSha256(key, absl::StrCat("run ", run))));
}

std::string RunOfToken(absl::string_view key, absl::string_view token) {
  std::string run(token.substr(0, token.find('.')));
  const std::string whole = RunToken(key, run);
  return !whole.empty() && base::EqualInConstantTime(token, whole) ? run : "";
}

}  // namespace tutti::service

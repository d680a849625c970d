// Encoding and decoding are inverse, and no target gets a path out of its root.
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/percent_encode.h"
#include "http/url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto back = tutti::http::PercentDecode(tutti::base::PercentEncode(text));
  if (text.find('\0') == std::string::npos && (!back.ok() || *back != text)) std::abort();
  const auto target = tutti::http::ParseTarget(text);
  if (target.ok() &&
      (target->path.front() != '/' || absl::StrContains(absl::StrCat(target->path, "/"), "/../"))) {
    std::abort();
  }
  const auto authority = tutti::http::ParseBaseUrl(text);
  if (authority.ok() && (authority->port < 1 || authority->port > 65535)) std::abort();
  return 0;
}

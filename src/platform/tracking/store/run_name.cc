#include "platform/tracking/store/run_name.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/hash.h"

namespace tutti::tracking {
namespace {

constexpr const char* kManners[] = {"bold", "brave", "calm",  "clear", "eager", "fair",
                                    "fast", "fresh", "grand", "keen",  "kind",  "light",
                                    "neat", "quick", "quiet", "sharp", "still", "warm"};
constexpr const char* kAnimals[] = {"bear",  "crane", "deer", "eagle", "finch", "fox",
                                    "goose", "hare",  "ibex", "lark",  "lynx",  "mole",
                                    "otter", "owl",   "seal", "stork", "swan",  "wren"};

}  // namespace

std::string RandomRunName() {
  const std::string bytes = base::RandomBytes(4);
  const auto at = [&bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  return absl::StrCat(kManners[at(0) % std::size(kManners)], "-",
                      kAnimals[at(1) % std::size(kAnimals)], "-", (at(2) * 256 + at(3)) % 1000);
}

}  // namespace tutti::tracking

// Whatever bytes come, however they are cut, what is shown has no text that is hidden and is the
// same as of the whole; in place no byte moves.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/text/text_mask.h"

// The first byte says where the rest is cut; a zero byte stands between texts, two before what is
// shown.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t piece = 1 + data[0] % 16;
  const absl::string_view all(reinterpret_cast<const char*>(data + 1), size - 1);
  const absl::string_view between("\0\0", 2);
  const size_t at = all.find(between);
  if (at == absl::string_view::npos) return 0;
  const std::vector<std::string> texts = absl::StrSplit(all.substr(0, at), '\0');
  const std::string shown(all.substr(at + 2));
  const tutti::base::TextMask mask(texts);
  std::string out;
  tutti::base::MaskedStream stream(&mask);
  for (size_t i = 0; i < shown.size(); i += piece) {
    stream.Push(absl::string_view(shown).substr(i, piece), out);
  }
  stream.Finish(out);
  if (out != mask.Hide(shown)) std::abort();
  std::string in_place = shown;
  mask.HideInPlace(in_place);
  if (in_place.size() != shown.size()) std::abort();
  for (const std::string& text : texts) {
    const bool has_stars = text.empty() || text.find('*') != std::string::npos;
    if (!has_stars && in_place.find(text) != std::string::npos) std::abort();
  }
  for (const std::string& text : texts) tutti::base::TextsToHide(text);
  return 0;
}

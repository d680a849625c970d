#include "runtime/data/decode/image_codec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/one_of.h"
#include "runtime/data/decode/jpeg/planes.h"

namespace tutti::data {
absl::StatusOr<Planes> ImageReader::DecodePlanes(const Region&, int) {
  TUTTI_ASSIGN_OR_RETURN(const ImageView view, Decode());
  return SplitIntoPlanes(view, 0, 0, {view.width, view.height}, planes_);
}

const ImageCodec* CodecOf(absl::string_view encoded) {
  const auto codecs = ImageCodecs();
  const auto found = std::find_if(codecs.begin(), codecs.end(),
                                  [&](const ImageCodec* codec) { return codec->is(encoded); });
  return found == codecs.end() ? nullptr : *found;
}

absl::string_view EndingOf(const ImageCodec& codec, absl::string_view encoded) {
  const bool second = codec.takes_second_ending != nullptr && codec.takes_second_ending(encoded);
  return codec.endings[second ? 1 : 0];
}

bool IsImageExtension(absl::string_view extension) {
  const auto codecs = ImageCodecs();
  return !extension.empty() &&
         std::any_of(codecs.begin(), codecs.end(), [&](const ImageCodec* codec) {
           return extension == codec->endings[0] || extension == codec->endings[1];
         });
}

std::string ImageEndings() {
  std::vector<std::string> endings;
  for (const ImageCodec* const codec : ImageCodecs()) {
    for (const absl::string_view ending : codec->endings) {
      if (!ending.empty()) endings.push_back(absl::StrCat(".", ending));
    }
  }
  return base::OneOf(endings);
}

std::string ImageKinds() {
  std::vector<std::string> names;
  for (const ImageCodec* const codec : ImageCodecs()) names.emplace_back(codec->name);
  return base::OneOf(names);
}

}  // namespace tutti::data

#include "runtime/data/decode/image_decoder.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::data {
namespace {

// Returns "starts with 47 49 46 38 39 61", or "empty".
std::string Beginning(absl::string_view encoded) {
  if (encoded.empty()) return "empty";
  std::string text = "starts with";
  for (const char c : encoded.substr(0, 8)) {
    absl::StrAppendFormat(&text, " %02x", static_cast<unsigned char>(c));
  }
  return text;
}

// Returns what a message calls a file of a known kind that is not read.
absl::string_view UnreadKindOf(absl::string_view encoded) {
  if (absl::StartsWith(encoded, "GIF8")) return ", a GIF image";
  const absl::string_view brand = encoded.substr(std::min<size_t>(4, encoded.size()), 8);
  if (brand == "ftypheic" || brand == "ftypmif1") return ", a HEIC image";
  return brand == "ftypavif" ? ", an AVIF image" : "";
}

}  // namespace

absl::StatusOr<ImageSize> ImageDecoder::Open(absl::string_view encoded) {
  const ImageCodec* const codec = CodecOf(encoded);
  if (codec == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("not ", ImageKinds(), " (", Beginning(encoded), UnreadKindOf(encoded), ")"));
  }
  if (codec != codec_) {
    auto found = std::find_if(readers_.begin(), readers_.end(),
                              [&](const auto& one) { return one.first == codec; });
    if (found == readers_.end()) {
      found = readers_.emplace(readers_.end(), codec, codec->reader(kMaxPixels));
    }
    codec_ = codec;
    reader_ = found->second.get();
  }
  return reader_->Open(encoded);
}

}  // namespace tutti::data

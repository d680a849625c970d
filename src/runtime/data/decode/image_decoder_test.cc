// Covers: image_codec.cc, image_codecs.cc, jpeg_image.cc.
#include "runtime/data/decode/image_decoder.h"

#include <gmock/gmock.h>

#include <map>

namespace tutti::data {
namespace {

// The first bytes of a file of each ending; of some kinds there are several.
const std::multimap<std::string, std::string>& FirstBytes() {
  static const std::multimap<std::string, std::string> bytes = {
      {"jpg", "\xFF\xD8\xFF\xE0"},
      {"png", "\x89PNG\r\n\x1a\n"},
      {"ppm", "P6\n2 1\n255\n"},
      {"pgm", "P5\n2 1\n255\n"},
      {"bmp", "BM"},
      {"tif", std::string("II*\0", 4)},
      {"tif", std::string("MM\0+", 4)},
      {"webp", "RIFF....WEBP"},
  };
  return bytes;
}

TEST(ImageCodecs, EachEndingLeadsToOneKind) {
  std::map<absl::string_view, absl::string_view> kinds;
  for (const ImageCodec* const codec : ImageCodecs()) {
    for (const absl::string_view ending : codec->endings) {
      if (ending.empty()) continue;
      EXPECT_TRUE(kinds.emplace(ending, codec->name).second) << ending;
      EXPECT_TRUE(IsImageExtension(ending)) << ending;
      EXPECT_THAT(ImageEndings(), testing::HasSubstr("." + std::string(ending)));
    }
  }
  EXPECT_EQ(kinds.at("jpeg"), "JPEG");
  EXPECT_EQ(kinds.at("pgm"), "PNM");
  EXPECT_EQ(kinds.at("tiff"), "TIFF");
}

TEST(ImageCodecs, OtherEndingsAreNoImages) {
  for (const absl::string_view ending : {"", "gif", "JPG", ".jpg", "txt"}) {
    EXPECT_FALSE(IsImageExtension(ending)) << ending;
  }
}

TEST(ImageCodecs, TheFirstBytesLeadToTheKindAndTheEndingThatItIsWrittenWith) {
  for (const auto& [ending, bytes] : FirstBytes()) {
    const ImageCodec* const found = CodecOf(bytes);
    ASSERT_NE(found, nullptr) << ending;
    EXPECT_EQ(EndingOf(*found, bytes), ending);
    for (const ImageCodec* const codec : ImageCodecs()) {
      EXPECT_EQ(codec->is(bytes), codec == found) << codec->name;
    }
  }
}

TEST(ImageCodecs, EveryKindHasItsFirstBytesInThisTest) {
  for (const ImageCodec* const codec : ImageCodecs()) {
    EXPECT_GT(FirstBytes().count(std::string(codec->endings[0])), 0u) << codec->name;
  }
}

TEST(ImageDecoder, EachKindIsOpenedByItsReader) {
  for (const auto& [ending, bytes] : FirstBytes()) {
    ImageDecoder decoder;
    EXPECT_FALSE(decoder.Open(bytes).ok()) << ending << ": nothing follows the first bytes";
    EXPECT_EQ(&decoder.codec(), CodecOf(bytes)) << ending;
  }
}

TEST(ImageDecoder, AnUnknownKindIsNamedByItsFirstBytes) {
  ImageDecoder decoder;
  const auto error = [&](absl::string_view encoded) {
    const absl::Status status = decoder.Open(encoded).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  const std::string none = "not JPEG, PNG, PNM, BMP, TIFF or WebP ";
  EXPECT_EQ(error("GIF89a"), none + "(starts with 47 49 46 38 39 61, a GIF image)");
  EXPECT_EQ(error(std::string("\0\0\0\x18"
                              "ftypheic",
                              12)),
            none + "(starts with 00 00 00 18 66 74 79 70, a HEIC image)");
  EXPECT_EQ(error("hi"), none + "(starts with 68 69)");
  EXPECT_EQ(error(""), none + "(empty)");
}

}  // namespace
}  // namespace tutti::data

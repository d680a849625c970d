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

const ImageCodec* CodecOf(absl::string_view encoded) {
  const ImageCodec* found = nullptr;
  for (const ImageCodec& codec : ImageCodecs()) {
    if (!codec.is(encoded)) continue;
    EXPECT_EQ(found, nullptr) << found->name << " and " << codec.name;
    found = &codec;
  }
  return found;
}

TEST(ImageCodecs, EachEndingLeadsToOneKind) {
  std::map<absl::string_view, absl::string_view> kinds;
  for (const ImageCodec& codec : ImageCodecs()) {
    for (const absl::string_view ending : codec.endings) {
      if (ending.empty()) continue;
      EXPECT_TRUE(kinds.emplace(ending, codec.name).second) << ending;
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
    const ImageCodec* const codec = CodecOf(bytes);
    ASSERT_NE(codec, nullptr) << ending;
    EXPECT_EQ(EndingOf(*codec, bytes), ending);
  }
}

TEST(ImageCodecs, EveryKindHasItsFirstBytesInThisTest) {
  for (const ImageCodec& codec : ImageCodecs()) {
    EXPECT_GT(FirstBytes().count(std::string(codec.endings[0])), 0u) << codec.name;
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
  EXPECT_EQ(error("GIF89a"), "not a JPEG (starts with 47 49 46 38 39 61, a GIF image)");
  EXPECT_EQ(error(std::string("\0\0\0\x18"
                              "ftypheic",
                              12)),
            "not a JPEG (starts with 00 00 00 18 66 74 79 70, a HEIC image)");
  EXPECT_EQ(error(std::string("\0\0\0\x18"
                              "ftypavif",
                              12)),
            "not a JPEG (starts with 00 00 00 18 66 74 79 70, an AVIF image)");
  EXPECT_EQ(error("hi"), "not a JPEG (starts with 68 69)");
  EXPECT_EQ(error(""), "not a JPEG (empty)");
}

}  // namespace
}  // namespace tutti::data

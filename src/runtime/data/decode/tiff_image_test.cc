#include <gmock/gmock.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "runtime/data/decode/image_codec.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;
using Rgb = std::vector<int>;

constexpr int64_t kMostOfTiff = 1 << 20;
enum Tag : uint16_t {
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kOrientation = 274,
  kSamples = 277,
  kPlanes = 284,
  kTileWidth = 322,
  kTileLength = 323,
  kExtra = 338,
  kFormat = 339
};

std::string Number(uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i);
  return text;
}

// A TIFF (little-endian, one image): `tags` of 16 bits by number, and the pieces of its samples,
// strips of all rows or tiles.
std::string TiffOf(uint32_t width, uint32_t height, std::map<uint16_t, uint32_t> tags,
                   const std::vector<std::string>& pieces) {
  const bool tiled = tags.contains(kTileWidth);
  tags.insert({{256, width}, {257, height}, {kCompression, 1}, {kPhotometric, 1}});
  const uint16_t offsets = tiled ? 324 : 273, counts = tiled ? 325 : 279;
  if (!tiled) tags.insert({278, height});
  tags[offsets] = tags[counts] = 0;
  const auto entries = static_cast<uint32_t>(tags.size()), pieces_at = 8 + 2 + 12 * entries + 4;
  const auto lists = static_cast<uint32_t>(4 * pieces.size());
  std::string list_of_offsets, list_of_counts, samples;
  for (const std::string& piece : pieces) {
    list_of_offsets += Number(pieces_at + 2 * lists + static_cast<uint32_t>(samples.size()), 4);
    list_of_counts += Number(static_cast<uint32_t>(piece.size()), 4);
    samples += piece;
  }
  std::string file = "II*" + std::string(1, '\0') + Number(8, 4) + Number(entries, 2);
  for (const auto& [tag, value] : tags) {
    const bool list = tag == offsets || tag == counts;
    const std::string& own = tag == offsets ? list_of_offsets : list_of_counts;
    file += Number(tag, 2) + Number(list ? 4 : 3, 2) +
            Number(list ? static_cast<uint32_t>(pieces.size()) : 1, 4);
    if (!list) file += Number(value, 4);
    if (list && pieces.size() == 1) file += own;
    if (list && pieces.size() > 1) file += Number(pieces_at + (tag == offsets ? 0 : lists), 4);
  }
  return file + Number(0, 4) + list_of_offsets + list_of_counts + samples;
}

class TiffImageTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = reader_->Open(TiffOf(1, 1, {{kBits, 8}}, {"A"})).status();
    if (absl::IsFailedPrecondition(status)) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("install libtiff-dev"));
      GTEST_SKIP() << "built without libtiff";
    }
  }
  std::vector<Rgb> Decode(const std::string& encoded) {
    const auto size = reader_->Open(encoded);
    EXPECT_TRUE(size.ok()) << size.status();
    const auto view = reader_->Decode();
    EXPECT_TRUE(view.ok()) << view.status();
    if (!view.ok()) return {};
    EXPECT_EQ(*size, (ImageSize{view->width, view->height}));
    std::vector<Rgb> pixels;
    for (int i = 0; i < view->width * view->height; ++i) {
      pixels.emplace_back(view->pixels + 4 * i, view->pixels + 4 * i + 3);
    }
    return pixels;
  }
  static std::vector<Rgb> Greys(const std::vector<int>& levels) {
    std::vector<Rgb> pixels;
    for (const int level : levels) pixels.push_back({level, level, level});
    return pixels;
  }
  const ImageCodec& codec_ = *CodecOf(TiffOf(1, 1, {{kBits, 8}}, {"A"}));
  const std::unique_ptr<ImageReader> reader_ = codec_.reader(kMostOfTiff);
};

TEST_F(TiffImageTest, OfSixteenBitsTheUpperEightAreTaken) {
  EXPECT_EQ(Decode(TiffOf(2, 1, {{kBits, 16}}, {"\xFF\x40\x80\x41"})), Greys({0x40, 0x41}));
  EXPECT_EQ(Decode(TiffOf(1, 1, {{kBits, 16}, {kSamples, 3}, {kPhotometric, 2}},
                          {"\xFF\x40\xFF\x7F\x80\x02"})),
            (std::vector<Rgb>{{0x40, 0x7F, 0x02}}));
  EXPECT_EQ(Decode(TiffOf(2, 1, {{kBits, 8}}, {"\x07\x80"})), Greys({7, 0x80}));
  EXPECT_EQ(Decode(TiffOf(2, 1, {{kBits, 8}, {kPhotometric, 0}}, {"\x07\x80"})), Greys({248, 127}));
}

TEST_F(TiffImageTest, TransparencyIsLeftOut) {
  const std::string pixel = "\xC8\x64\x32\x80";
  const auto decode = [&](uint32_t extra) {
    return Decode(
        TiffOf(1, 1, {{kBits, 8}, {kSamples, 4}, {kPhotometric, 2}, {kExtra, extra}}, {pixel}));
  };
  EXPECT_EQ(decode(2), (std::vector<Rgb>{{200, 100, 50}}));
  EXPECT_EQ(decode(1), (std::vector<Rgb>{{255, 199, 99}})) << "multiplied by alpha in the file";
}

TEST_F(TiffImageTest, SamplesMayLieApartAndInTiles) {
  EXPECT_EQ(Decode(TiffOf(2, 1, {{kBits, 8}, {kSamples, 3}, {kPhotometric, 2}, {kPlanes, 2}},
                          {"\1\2", "\3\4", "\5\6"})),
            (std::vector<Rgb>{{1, 3, 5}, {2, 4, 6}}));
  std::string left(256, '\0'), right(256, '\0');
  left[0] = 1, left[16] = 3, right[0] = 2, right[16] = 4;
  const auto tiled =
      Decode(TiffOf(17, 2, {{kBits, 8}, {kTileWidth, 16}, {kTileLength, 16}}, {left, right}));
  ASSERT_EQ(tiled.size(), 34u);
  EXPECT_EQ((std::vector<Rgb>{tiled[0], tiled[16], tiled[17], tiled[33]}), Greys({1, 2, 3, 4}));
}

TEST_F(TiffImageTest, ItIsTurnedAsTheFileSays) {
  const std::vector<std::vector<int>> turned = {
      {1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1}, {4, 5, 6, 1, 2, 3},
      {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3}, {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (uint32_t orientation = 1; orientation <= 8; ++orientation) {
    EXPECT_EQ(Decode(TiffOf(3, 2, {{kBits, 8}, {kOrientation, orientation}}, {"\1\2\3\4\5\6"})),
              Greys(turned[orientation - 1]))
        << orientation;
  }
}

TEST_F(TiffImageTest, FewerBitsAndInksBecomeRgb) {
  EXPECT_EQ(Decode(TiffOf(3, 1, {{kBits, 1}}, {"\xA0"})), Greys({255, 0, 255}));
  EXPECT_EQ(Decode(TiffOf(1, 1, {{kBits, 8}, {kSamples, 4}, {kPhotometric, 5}},
                          {std::string("\xFF\0\0\0", 4)})),
            (std::vector<Rgb>{{0, 255, 255}}));
}

TEST_F(TiffImageTest, WhatIsNotReadOrDamagedIsNamed) {
  const auto error = [&](const std::string& encoded, int64_t most = kMostOfTiff) {
    const auto reader = codec_.reader(most);
    const absl::Status opened = reader->Open(encoded).status();
    return opened.ok() ? reader->Decode().status() : opened;
  };
  EXPECT_THAT(error(TiffOf(1, 1, {{kBits, 32}}, {"ABCD"})).message(), HasSubstr("32-bit samples"));
  EXPECT_THAT(error(TiffOf(1, 1, {{kBits, 32}, {kFormat, 3}}, {"ABCD"})).message(),
              HasSubstr("floating-point"));
  EXPECT_EQ(error(TiffOf(3, 2, {{kBits, 8}}, {"ABCDEF"}), 5),
            absl::InvalidArgumentError("a TIFF image of 3x2 pixels; the most is 5"));
  const std::string whole = TiffOf(3, 2, {{kBits, 8}}, {"ABCDEF"});
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(error(whole.substr(0, length)).ok()) << length;
  }
  EXPECT_THAT(std::string(error(whole.substr(0, whole.size() - 1)).message()),
              testing::StartsWith("damaged TIFF: "));
}

}  // namespace
}  // namespace tutti::data

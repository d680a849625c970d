// Covers: mask.cc, boxes.cc, runtime/data/decode/pnm.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/data/annotation/boxes.h"
#include "runtime/data/annotation/mask.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/decode/pnm.h"
#include "runtime/data/loader.h"

namespace tutti::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `palette`: of three colours that have nothing to do with the levels' order.
std::string EncodeLevels(const std::vector<uint8_t>& levels, int width, bool palette) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(levels.size()) / image.width;
  image.format = palette ? PNG_FORMAT_RGB_COLORMAP : PNG_FORMAT_GRAY;
  image.colormap_entries = palette ? 3 : 0;
  const uint8_t colours[] = {200, 0, 0, 0, 90, 0, 0, 0, 10};
  png_alloc_size_t size = 1 << 16;
  std::string bytes(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, bytes.data(), &size, 0, levels.data(), 0,
                                      palette ? colours : nullptr),
            0);
  bytes.resize(size);
  return bytes;
}

std::vector<uint8_t> Decoded(const std::string& encoded) {
  std::vector<uint8_t> memory;
  const auto mask = DecodeMask(encoded, memory);
  EXPECT_TRUE(mask.ok()) << mask.status();
  if (!mask.ok()) return {};
  return {mask->classes, mask->classes + mask->size.width * mask->size.height};
}

TEST(Mask, KeepsLevelsWhateverTheirColours) {
  const std::vector<uint8_t> levels = {0, 1, 2, 2, 1, 0};
  EXPECT_EQ(Decoded(EncodeLevels(levels, 3, /*palette=*/true)), levels);
  EXPECT_EQ(Decoded(EncodeLevels(levels, 2, /*palette=*/false)), levels);
  EXPECT_EQ(Decoded(PnmHeader({3, 2}, 1) + std::string(levels.begin(), levels.end())), levels);
}

TEST(Mask, IsWrittenAsItIsRead) {
  const std::vector<uint8_t> levels = {0, 7, 254, 1, 2, 255};
  std::vector<uint8_t> memory;
  const auto mask = DecodeMask(EncodeMask({levels.data(), {3, 2}}), memory);
  ASSERT_TRUE(mask.ok()) << mask.status();
  EXPECT_EQ(mask->size, (ImageSize{3, 2}));
  EXPECT_EQ(std::vector<uint8_t>(mask->classes, mask->classes + 6), levels);
}

TEST(Mask, RefusesWhatIsNoMask) {
  std::vector<uint8_t> memory;
  const auto refused = [&](const std::string& encoded) {
    return std::string(DecodeMask(encoded, memory).status().message());
  };
  EXPECT_THAT(refused(EncodePattern({.width = 8, .height = 8}, 1)), HasSubstr("PNG or a PGM"));
  const std::string whole = EncodeLevels(std::vector<uint8_t>(64 * 64, 3), 64, false);
  EXPECT_THAT(refused(whole.substr(0, whole.size() - 30)), HasSubstr("damaged PNG"));
  const std::vector<uint8_t> levels = {0, 1, 7, 255};
  const MaskView mask{levels.data(), {2, 2}};
  EXPECT_TRUE(CheckMask(mask, {2, 2}, 8).ok());
  EXPECT_THAT(std::string(CheckMask(mask, {2, 2}, 7).message()),
              HasSubstr("says 7 at pixel (0, 1), which is out of range: classes.txt names 7"));
  EXPECT_THAT(std::string(CheckMask(mask, {4, 1}, 8).message()), HasSubstr("is 2x2, its image"));
}

TEST(Boxes, AreReadAsCentresAndSides) {
  const auto boxes = ParseBoxes("1 0.5 0.25 0.5 0.5\n\n  0 0.75 0.75 0.5 0.5\n", 2);
  ASSERT_TRUE(boxes.ok()) << boxes.status();
  EXPECT_THAT(*boxes, ElementsAre(Box{1, 0.25, 0, 0.75, 0.5}, Box{0, 0.5, 0.5, 1, 1}));
  EXPECT_TRUE(ParseBoxes("", 2)->empty());
}

TEST(Boxes, NameTheLineThatIsWrong) {
  const auto refused = [](absl::string_view text) {
    return std::string(ParseBoxes(text, 2).status().message());
  };
  EXPECT_THAT(refused("0 .5 .5 .5 .5\n2 .5 .5 .5 .5"),
              HasSubstr("line 2: class 2 is out of range: classes.txt names 2"));
  EXPECT_THAT(refused("0 .5 .5 .5"), HasSubstr("line 1: \"0 .5 .5 .5\" is not a class"));
  EXPECT_THAT(refused("0 .5 .5 0 .5"), HasSubstr("no area"));
  EXPECT_THAT(refused("0 .9 .5 .5 .5"), HasSubstr("no area within"));
  EXPECT_THAT(refused("0 nan .5 .5 .5"), HasSubstr("is not a class"));
}

// Images of a bright rectangle on black, whose mask and box say where it is; sizes differ.
class Rectangles final : public Dataset {
 public:
  // `level`: what masks say of the rectangle.
  explicit Rectangles(Annotations kind, char level = '\1') : kind_(kind), level_(level) {}
  int64_t size() const override { return 24; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t) const override { return 0; }
  Annotations annotations() const override { return kind_; }
  int64_t most_boxes() const override { return 3; }
  std::string Describe(int64_t index) const override { return absl::StrCat("rectangle ", index); }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const override {
    scratch = PnmHeader(SizeOf(index), 1) + Pixels(index, '\xff');
    return absl::string_view(scratch);
  }
  absl::StatusOr<absl::string_view> Annotation(int64_t index, std::string& scratch) const override {
    const ImageSize size = SizeOf(index);
    const Region in = At(index);
    scratch =
        kind_ == Annotations::kMasks
            ? PnmHeader(size, 1) + Pixels(index, level_)
            : absl::StrCat("1 ", (in.left + in.width / 2.0) / size.width, " ",
                           (in.top + in.height / 2.0) / size.height, " ",
                           double(in.width) / size.width, " ", double(in.height) / size.height);
    return absl::string_view(scratch);
  }

 private:
  static ImageSize SizeOf(int64_t index) {
    return {64 + 4 * static_cast<int>(index), 120 - 2 * static_cast<int>(index)};
  }
  static Region At(int64_t index) {
    const int i = static_cast<int>(index);
    return {10 + i, 60 - 2 * i, 30, 24 + i};
  }
  static std::string Pixels(int64_t index, char inside) {
    const ImageSize size = SizeOf(index);
    const Region in = At(index);
    std::string pixels;
    for (int y = 0; y < size.height; ++y) {
      for (int x = 0; x < size.width; ++x) {
        const bool is =
            x >= in.left && x < in.left + in.width && y >= in.top && y < in.top + in.height;
        pixels.push_back(is ? inside : '\0');
      }
    }
    return pixels;
  }
  const Annotations kind_;
  const char level_;
  const std::vector<std::string> classes_ = {"nothing", "rectangle"};
};

constexpr int kSide = 48;

LoaderOptions Crops(const Augmentation& augmentation) {
  LoaderOptions options;
  options.global_batch = 12;
  options.threads = 2;
  options.augmentation = augmentation;
  options.augmentation.height = options.augmentation.width = kSide;
  return options;
}

const std::vector<Augmentation> kWays = {{.random_resized_crop = true, .flip = Flip::kByChance},
                                         {.resize = 50},
                                         {.stretch = true, .flip = Flip::kByChance}};

// Calls look(image, batch, position) for every image of two epochs.
template <typename Look>
void ForEach(Annotations kind, const Augmentation& way, const Look& look) {
  const auto loader = MakeLoader(std::make_shared<Rectangles>(kind), Crops(way));
  ASSERT_TRUE(loader.ok()) << loader.status();
  for (int step = 0; step < 4; ++step) {
    const auto batch = (*loader)->Next(base::Deadline::After(base::Patient(absl::Seconds(20))));
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (int64_t i = 0; i < batch->count; ++i) {
      look(static_cast<const float*>(batch->pixels) + i * kSide * kSide * 3, *batch, i);
    }
  }
}

TEST(Annotation, MasksGoTheWayOfTheirImages) {
  for (const Augmentation& way : kWays) {
    int64_t same = 0, pixels = 0;
    ForEach(Annotations::kMasks, way, [&](const float* image, const Batch& batch, int64_t i) {
      ASSERT_NE(batch.masks, nullptr);
      EXPECT_EQ(batch.boxes, nullptr);
      const uint8_t* const mask = batch.masks + i * kSide * kSide;
      for (int p = 0; p < kSide * kSide; ++p) {
        if (image[3 * p] > 0.02f && image[3 * p] < 0.98f) continue;  // at an edge
        same += (image[3 * p] > 0.5f) == (mask[p] == 1);
        ++pixels;
      }
    });
    EXPECT_EQ(same, pixels);
    EXPECT_GT(pixels, 48 * kSide * kSide * 3 / 4);
  }
}

// A wrong class is no unreadable image, of which some may be.
TEST(Annotation, AMasksClassOutOfRangeIsAnErrorAtOnce) {
  LoaderOptions options = Crops({.resize = 50});
  options.max_unreadable = 1000;
  int told = 0;
  options.on_unreadable = [&](absl::string_view) { ++told; };
  const auto loader = MakeLoader(std::make_shared<Rectangles>(Annotations::kMasks, '\2'), options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const auto batch = (*loader)->Next(base::Deadline::After(base::Patient(absl::Seconds(20))));
  EXPECT_TRUE(absl::IsInvalidArgument(batch.status())) << batch.status();
  EXPECT_THAT(std::string(batch.status().message()),
              AllOf(HasSubstr("rectangle "), HasSubstr("the mask says 2 at pixel (")));
  EXPECT_EQ(told, 0);
}

TEST(Annotation, BoxesGoTheWayOfTheirImages) {
  for (const Augmentation& way : kWays) {
    int compared = 0;
    ForEach(Annotations::kBoxes, way, [&](const float* image, const Batch& batch, int64_t i) {
      ASSERT_EQ(batch.most_boxes, 3);
      int left = kSide, top = kSide, right = 0, bottom = 0;
      for (int p = 0; p < kSide * kSide; ++p) {
        if (image[3 * p] < 0.5f) continue;
        left = std::min(left, p % kSide), right = std::max(right, p % kSide + 1);
        top = std::min(top, p / kSide), bottom = std::max(bottom, p / kSide + 1);
      }
      const float* const box = batch.boxes + i * 3 * 5;
      EXPECT_EQ(box[5], -1) << "one object at most";
      if (box[0] == -1) return;  // its centre was cropped away
      EXPECT_EQ(box[0], 1);
      const double pixel = 1.0 / kSide;
      EXPECT_NEAR(box[1], left * pixel, pixel);
      EXPECT_NEAR(box[2], top * pixel, pixel);
      EXPECT_NEAR(box[3], right * pixel, pixel);
      EXPECT_NEAR(box[4], bottom * pixel, pixel);
      ++compared;
    });
    EXPECT_GT(compared, 20);
  }
}

TEST(Annotation, BeyondTheImageNobodyKnows) {
  const std::vector<uint8_t> levels(4, 1);
  const Geometry shifted{.source = {2, 2}, .left = -1, .top = 0};
  std::vector<uint8_t> out(4);
  PlaceMask({levels.data(), {2, 2}}, shifted, {2, 2}, out.data());
  EXPECT_THAT(out, ElementsAre(kUnknownClass, 1, kUnknownClass, 1));
}

}  // namespace
}  // namespace tutti::data

#include "runtime/data/augment/geometry.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"

namespace tutti::data {
namespace {

// Inception's crop as torchvision draws it: an area of `least` (8 % as it does) to all of the
// image, an aspect ratio between 3/4 and 4/3 (uniform in its logarithm).
Region DrawResizedCrop(ImageSize source, double least, RandomStream& random) {
  const double area = double(source.width) * source.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.Uniform(least, 1);
    const double ratio = std::exp(random.Uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const int width = static_cast<int>(std::nearbyint(std::sqrt(target * ratio)));
    const int height = static_cast<int>(std::nearbyint(std::sqrt(target / ratio)));
    if (width < 1 || height < 1 || width > source.width || height > source.height) continue;
    const int top =
        static_cast<int>(random.Below(static_cast<uint64_t>(source.height - height + 1)));
    const int left =
        static_cast<int>(random.Below(static_cast<uint64_t>(source.width - width + 1)));
    return {left, top, width, height};
  }
  // The image itself is too long: the central crop of the nearest allowed ratio.
  const double ratio = double(source.width) / source.height;
  Region crop{0, 0, source.width, source.height};
  if (ratio < 3.0 / 4) {
    crop.height = std::max(1, static_cast<int>(std::nearbyint(source.width / (3.0 / 4))));
  } else if (ratio > 4.0 / 3) {
    crop.width = std::max(1, static_cast<int>(std::nearbyint(source.height * (4.0 / 3))));
  }
  crop.left = (source.width - crop.width) / 2;
  crop.top = (source.height - crop.height) / 2;
  return crop;
}

// Ten tries for a rectangle that is smaller than the image in both directions.
Region DrawErased(const Augmentation& augmentation, RandomStream& random) {
  if (augmentation.erase == 0 || random.Uniform(0, 1) >= augmentation.erase) return {};
  const double area = double(augmentation.width) * augmentation.height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.Uniform(0.02, 0.33);
    const double ratio = std::exp(random.Uniform(std::log(0.3), std::log(3.3)));
    const int height = static_cast<int>(std::nearbyint(std::sqrt(target * ratio)));
    const int width = static_cast<int>(std::nearbyint(std::sqrt(target / ratio)));
    if (height >= augmentation.height || width >= augmentation.width) continue;
    const int top =
        static_cast<int>(random.Below(static_cast<uint64_t>(augmentation.height - height + 1)));
    const int left =
        static_cast<int>(random.Below(static_cast<uint64_t>(augmentation.width - width + 1)));
    return {left, top, width, height};
  }
  return {};
}

Geometry Resized(const Augmentation& augmentation, const Region& crop) {
  const int width = augmentation.width, height = augmentation.height;
  return {.resize = true,
          .x = {double(crop.left), double(crop.width), width, 0, width},
          .y = {double(crop.top), double(crop.height), height, 0, height}};
}

// The shorter side to `resize`, then the centre; Python rounds halves to even, as nearbyint does.
Geometry ResizeAndCenter(const Augmentation& augmentation, int resize, ImageSize source) {
  const int64_t shorter = std::min(source.width, source.height);
  const auto resized = [&](int side) { return static_cast<int>(side * int64_t{resize} / shorter); };
  const auto axis = [&](int side, int count) {
    const int full = resized(side);
    const int first = static_cast<int>(std::nearbyint((full - count) / 2.0));
    return Axis{0, double(side), full, first, count};
  };
  return {.resize = true,
          .x = axis(source.width, augmentation.width),
          .y = axis(source.height, augmentation.height)};
}

absl::Status CheckFits(const Augmentation& augmentation, ImageSize source) {
  const int width = source.width + 2 * augmentation.pad_crop;
  const int height = source.height + 2 * augmentation.pad_crop;
  const bool fits = augmentation.pad_crop > 0
                        ? width >= augmentation.width && height >= augmentation.height
                        : width == augmentation.width && height == augmentation.height;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the image is ", source.width, "x", source.height, ", the batch ", augmentation.width, "x",
      augmentation.height, "; let it be resized (resize, random_resized_crop)"));
}

}  // namespace

absl::Status Validate(const Augmentation& augmentation) {
  const auto bad = [](auto... text) { return absl::InvalidArgumentError(absl::StrCat(text...)); };
  if (augmentation.width < 1 || augmentation.height < 1 || augmentation.width > 4096 ||
      augmentation.height > 4096) {
    return bad("augmentation: height and width must be 1 to 4096");
  }
  const int kinds = (augmentation.pad_crop != 0) + augmentation.random_resized_crop +
                    (augmentation.resize != 0) + augmentation.stretch;
  if (kinds > 1) {
    return bad(
        "augmentation: pad_crop, random_resized_crop, resize and stretch exclude each other");
  }
  if (!(augmentation.least_area > 0 && augmentation.least_area <= 1)) {
    return bad("augmentation: least_area must be above 0 and at most 1");
  }
  if (!(augmentation.erase >= 0 && augmentation.erase <= 1)) {
    return bad("augmentation: erase is a probability, 0 to 1, and not ", augmentation.erase);
  }
  if (augmentation.pad_crop < 0 || augmentation.pad_crop > 1024) {
    return bad("augmentation: pad_crop is ", augmentation.pad_crop, "; allowed are 0 to 1024");
  }
  const int longer = std::max(augmentation.width, augmentation.height);
  if (augmentation.resize != 0 && (augmentation.resize < longer || augmentation.resize > 16384)) {
    return bad("augmentation: resize is ", augmentation.resize, "; it must be at least ", longer,
               ", the side of the crop, and at most 16384");
  }
  for (const float deviation : augmentation.stddev) {
    if (!(deviation > 0)) return bad("augmentation: stddev must be above 0");
  }
  return absl::OkStatus();
}

bool CopiesPixels(const Augmentation& augmentation) {
  return !augmentation.random_resized_crop && augmentation.resize == 0 && !augmentation.stretch;
}

bool CopiesPixelsOf(const Augmentation& augmentation, ImageSize source) {
  const bool fits = source == ImageSize{augmentation.width, augmentation.height};
  return CopiesPixels(augmentation) && (fits || !augmentation.fit);
}

absl::StatusOr<Geometry> PlanGeometry(const Augmentation& augmentation, ImageSize source,
                                      RandomStream random) {
  Geometry geometry;
  if (augmentation.random_resized_crop) {
    geometry = Resized(augmentation, DrawResizedCrop(source, augmentation.least_area, random));
  } else if (augmentation.stretch) {
    geometry = Resized(augmentation, {0, 0, source.width, source.height});
  } else if (augmentation.resize > 0) {
    geometry = ResizeAndCenter(augmentation, augmentation.resize, source);
  } else if (!CopiesPixelsOf(augmentation, source)) {
    const int longer = std::max(augmentation.width, augmentation.height);
    geometry = ResizeAndCenter(augmentation, longer, source);
  } else {
    if (absl::Status fits = CheckFits(augmentation, source); !fits.ok()) return fits;
    const int pad = augmentation.pad_crop;
    const auto draw = [&](int side, int wanted) {
      return static_cast<int>(random.Below(static_cast<uint64_t>(side + 2 * pad - wanted + 1))) -
             pad;
    };
    if (pad > 0) {
      geometry.top = draw(source.height, augmentation.height);
      geometry.left = draw(source.width, augmentation.width);
    }
  }
  geometry.flip =
      augmentation.flip == Flip::kAlways || (augmentation.flip == Flip::kByChance && random.Coin());
  geometry.erased = DrawErased(augmentation, random);
  geometry.source = source;
  return geometry;
}

}  // namespace tutti::data

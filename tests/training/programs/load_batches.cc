// What the loader makes of FOLDER/train, for a comparison with torchvision's:
//   load_batches FOLDER crop|resized-crop|resize fp32|bf16 SIDE BATCH EPOCH PIXELS
// PIXELS gets the values of an epoch's whole batches, one after the other, as the loader gave them.
// Standard output has a line of JSON for each image: its index, its label, and what was drawn for
// it.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "runtime/data/augment/geometry.h"
#include "runtime/data/augment/normalize.h"
#include "runtime/data/decode/image_decoder.h"

namespace data = tutti::data;

namespace {

template <typename Value>
Value OrExit(absl::StatusOr<Value> result) {
  if (result.ok()) return *std::move(result);
  std::cerr << "error: " << result.status().message() << "\n";
  std::exit(1);
}

data::Augmentation AugmentationOf(const std::string& kind, int side) {
  data::Augmentation augmentation{
      .height = side,
      .width = side,
      .flip = kind != "resize" ? data::Flip::kByChance : data::Flip::kNever,
      .erase = kind == "resize" ? 0 : 0.5,
      .mean = {0.485f, 0.456f, 0.406f},
      .stddev = {0.229f, 0.224f, 0.225f}};
  augmentation.pad_crop = kind == "crop" ? side / 8 : 0;
  augmentation.random_resized_crop = kind == "resized-crop";
  augmentation.resize = kind == "resize" ? side * 8 / 7 : 0;
  return augmentation;
}

data::ImageSize SizeOf(const data::Dataset& dataset, int64_t sample) {
  std::string scratch;
  data::ImageDecoder decoder;
  return OrExit(decoder.Open(OrExit(dataset.Encoded(sample, scratch))));
}

nlohmann::json Drawn(const data::LoaderOptions& options, const data::Dataset& dataset,
                     int64_t epoch, int64_t sample) {
  const data::RandomStream random(options.seed, data::RandomStream::Purpose::kAugmentation, epoch,
                                  sample);
  const data::Geometry geometry =
      OrExit(data::PlanGeometry(options.augmentation, SizeOf(dataset, sample), random));
  const data::Region& erased = geometry.erased;
  return {{"top", geometry.resize ? geometry.y.begin : geometry.top},
          {"left", geometry.resize ? geometry.x.begin : geometry.left},
          {"height", geometry.y.extent},
          {"width", geometry.x.extent},
          {"flip", geometry.flip},
          {"erased", {erased.top, erased.left, erased.height, erased.width}}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::cerr << "usage: load_batches FOLDER crop|resized-crop|resize fp32|bf16 SIDE BATCH EPOCH "
                 "PIXELS\n";
    return 2;
  }
  const std::string kind = argv[2];
  data::LoaderOptions options{.global_batch = std::atoi(argv[5]), .seed = 4, .threads = 2};
  options.shuffle = kind != "resize";
  options.augmentation = AugmentationOf(kind, std::atoi(argv[4]));
  if (argv[3] == std::string("bf16")) options.pixels = data::PixelType::kBFloat16;
  const int64_t epoch = std::atoi(argv[6]);

  const auto dataset = OrExit(data::OpenDataset(argv[1], "train"));
  const auto loader = OrExit(data::MakeLoader(dataset, options));
  const size_t bytes = static_cast<size_t>(options.augmentation.height) *
                       static_cast<size_t>(options.augmentation.width) * 3 *
                       data::BytesOf(options.pixels);
  std::ofstream pixels(argv[7], std::ios::binary);
  loader->Seek(epoch, 0);
  for (int64_t step = 0; step < loader->steps_per_epoch(); ++step) {
    const auto soon = tutti::base::Deadline::After(absl::Seconds(60));
    const data::Batch batch = OrExit(loader->Next(soon));
    pixels.write(static_cast<const char*>(batch.pixels),
                 static_cast<std::streamsize>(bytes * static_cast<size_t>(batch.count)));
    for (int64_t i = 0; i < batch.count; ++i) {
      nlohmann::json line = Drawn(options, *dataset, epoch, batch.samples[i]);
      line["sample"] = batch.samples[i];
      line["label"] = batch.labels[i];
      std::cout << line.dump() << "\n";
    }
  }
  return pixels.good() ? 0 : 1;
}

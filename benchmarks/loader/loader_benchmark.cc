// What a sample costs on its way from the shard to the batch: images per second of the whole
// loader, and nanoseconds of each stage, on the CIFAR-10 sample and on a photograph-sized JPEG.
//
//   loader_benchmark [--benchmark_filter=REGEX]
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/data/augment/transform.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/jpeg/jpeg.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/loader.h"
#include "runtime/data/sampling/sampler.h"

namespace tutti::data {
namespace {

const Dataset& Sample() {
  static const auto dataset = *OpenTarShards(TUTTI_CIFAR10_SAMPLE, "train");
  return *dataset;
}

Augmentation CifarRecipe() {
  return {.pad_crop = 4,
          .flip = Flip::kByChance,
          .mean = {0.4914f, 0.4822f, 0.4465f},
          .stddev = {0.2470f, 0.2435f, 0.2616f}};
}

Augmentation ImageNetRecipe() {
  return {.height = 224,
          .width = 224,
          .random_resized_crop = true,
          .flip = Flip::kByChance,
          .mean = {0.485f, 0.456f, 0.406f},
          .stddev = {0.229f, 0.224f, 0.225f}};
}

RandomStream Draw(int64_t sample) {
  return RandomStream(1, RandomStream::Purpose::kAugmentation, 0, sample);
}

// 500 x 375, the size of ImageNet's median photograph.
const std::string& Photograph() {
  static const std::string jpeg = EncodePattern({.width = 500, .height = 375, .quality = 92});
  return jpeg;
}

// Arguments: threads, whether decoded images are kept.
void LoaderCifar10(benchmark::State& state) {
  LoaderOptions options;
  options.threads = static_cast<int>(state.range(0));
  options.cache_bytes = state.range(1) != 0 ? options.cache_bytes : 0;
  options.augmentation = CifarRecipe();
  const std::shared_ptr<const Dataset> sample(&Sample(), [](const Dataset*) {});
  const auto loader = *MakeLoader(sample, options);
  const auto next = [&] {
    const auto batch = loader->Next(base::Deadline::After(absl::Seconds(60)));
    if (!batch.ok()) state.SkipWithError(batch.status().ToString().c_str());
  };
  for (int64_t i = 0; i < loader->steps_per_epoch() + 1; ++i) next();  // the cache fills
  for (auto _ : state) next();
  state.SetItemsProcessed(state.iterations() * options.global_batch);
}
BENCHMARK(LoaderCifar10)
    ->ArgNames({"threads", "cache"})
    ->ArgsProduct({{0, 1, 2}, {0, 1}})
    ->UseRealTime()
    ->MinTime(0.2);

void OpenShards(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(OpenTarShards(TUTTI_CIFAR10_SAMPLE, "train"));
  state.SetItemsProcessed(state.iterations() * Sample().size());
}
BENCHMARK(OpenShards)->Unit(benchmark::kMillisecond)->MinTime(0.2);

void ShuffleEpoch(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Permutation(state.range(0), 1, state.iterations()));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(ShuffleEpoch)->Arg(50000)->Unit(benchmark::kMillisecond)->MinTime(0.1);

void Decode32(benchmark::State& state) {
  JpegDecoder decoder;
  std::string scratch;
  int64_t sample = 0;
  for (auto _ : state) {
    const auto size = decoder.Open(*Sample().Encoded(sample++ % Sample().size(), scratch));
    benchmark::DoNotOptimize(decoder.Decode({0, 0, size->width, size->height}));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Decode32)->MinTime(0.2);

void Augment32(benchmark::State& state) {
  const auto type = state.range(0) != 0 ? PixelType::kBFloat16 : PixelType::kFloat32;
  const Normalizer normalizer(CifarRecipe(), type);
  Transform transform(CifarRecipe(), normalizer);
  std::string scratch;
  const auto image = transform.DecodeWhole(*Sample().Encoded(0, scratch));
  std::vector<float> out(32 * 32 * 3);
  int64_t sample = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(transform.ApplyToPixels(*image, Draw(sample++), out.data()));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Augment32)->ArgName("bf16")->Arg(0)->Arg(1)->MinTime(0.1);

// The bound of loaders that decode every pixel.
void FullDecode500(benchmark::State& state) {
  JpegDecoder decoder;
  for (auto _ : state) {
    const auto size = decoder.Open(Photograph());
    benchmark::DoNotOptimize(decoder.Decode({0, 0, size->width, size->height}));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FullDecode500)->Unit(benchmark::kMicrosecond)->MinTime(0.2);

// Decode of the crop, resize, flip, normalise.
void ResizedCrop224(benchmark::State& state) {
  const auto type = state.range(0) != 0 ? PixelType::kBFloat16 : PixelType::kFloat32;
  const Normalizer normalizer(ImageNetRecipe(), type);
  Transform transform(ImageNetRecipe(), normalizer);
  std::vector<float> out(224 * 224 * 3);
  int64_t sample = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(transform.Apply(Photograph(), Draw(sample++), out.data()));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ResizedCrop224)
    ->ArgName("bf16")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond)
    ->MinTime(0.2);

void Resize224(benchmark::State& state) {
  const auto type = state.range(0) != 0 ? PixelType::kBFloat16 : PixelType::kFloat32;
  const auto layout = state.range(1) != 0 ? PixelLayout::kPlanar : PixelLayout::kChannelsLast;
  const Normalizer normalizer(ImageNetRecipe(), type, layout);
  JpegDecoder decoder;
  const ImageSize size = *decoder.Open(Photograph());
  const Planes image = *decoder.DecodePlanes({0, 0, size.width, size.height});
  std::vector<float> out(224 * 224 * 3);
  Resampler resampler;
  for (auto _ : state) {
    resampler.Prepare({62, 375, 224, 0, 224}, {0, 375, 224, 0, 224}, size);
    resampler.Run(image, false, normalizer, out.data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Resize224)
    ->ArgNames({"bf16", "planar"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->Unit(benchmark::kMicrosecond)
    ->MinTime(0.1);

}  // namespace
}  // namespace tutti::data

BENCHMARK_MAIN();

// Decoder and model in a bare loop, as a bound for servers: prints images per second.
//
//   scoring_bare_loop MODEL IMAGES [--precision fp32] [--workers 1] [--threads 2] [--batch 4]
//   [--seconds 10]
//
// Each worker decodes a batch of the folder's images, shared out over its threads, and computes it,
// again and again; nothing is queued, parsed or sent.
#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/file.h"
#include "runtime/device/cpu/kept_memory.h"
#include "runtime/scoring/scorer.h"
#include "runtime/scoring/trained_model.h"

namespace tutti {
namespace {

struct Options {
  std::string model, images, precision = "fp32";
  int workers = 1, threads = 2;
  size_t batch = 4;
  double seconds = 10;
};

absl::StatusOr<std::vector<std::string>> ReadImages(const std::string& folder) {
  const auto found = scoring::FindFilesToScore(std::vector{folder});
  if (!found.ok()) return found.status();
  std::vector<std::string> images;
  for (const std::string& file : found->files) {
    auto encoded = base::ReadFile(file);
    if (!encoded.ok()) return encoded.status();
    images.push_back(*std::move(encoded));
  }
  return images;
}

// Goes on from image `next` until `end`; returns how many images it computed.
int64_t Loop(scoring::TrainedModel& model, const std::vector<std::string>& images, size_t next,
             const Options& options, base::Deadline end) {
  at::set_num_threads(options.threads);
  std::vector<std::vector<float>> pixels(options.batch, std::vector<float>(model.values()));
  std::vector<const float*> batch;
  for (const auto& image : pixels) batch.push_back(image.data());
  int64_t count = 0;
  while (!end.Expired()) {
    std::vector<std::thread> decoders;
    std::atomic<size_t> place = 0;
    const auto decode = [&] {
      for (size_t i = place++; i < options.batch; i = place++) {
        model.Decode(images[(next + i) % images.size()], pixels[i].data()).status().IgnoreError();
      }
    };
    for (int i = 1; i < options.threads; ++i) decoders.emplace_back(decode);
    decode();
    for (std::thread& decoder : decoders) decoder.join();
    model.Run(batch);
    next += options.batch;
    count += static_cast<int64_t>(options.batch);
  }
  return count;
}

int Measure(const Options& options) {
  device::KeepLargeBlocks();
  const auto images = ReadImages(options.images);
  const auto model = scoring::TrainedModel::Open(options.model, options.precision);
  if (!images.ok() || !model.ok()) {
    const absl::Status& status = images.ok() ? model.status() : images.status();
    std::fprintf(stderr, "scoring_bare_loop: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  Loop(**model, *images, 0, options, base::Deadline::After(absl::Seconds(1)));
  std::atomic<int64_t> count = 0;
  const absl::Duration begin = base::SteadyNow();
  const base::Deadline end = base::Deadline::After(absl::Seconds(options.seconds));
  std::vector<std::thread> workers;
  for (int i = 0; i < options.workers; ++i) {
    workers.emplace_back(
        [&, i] { count += Loop(**model, *images, static_cast<size_t>(i) * 7, options, end); });
  }
  for (std::thread& worker : workers) worker.join();
  std::printf("%.2f\n",
              static_cast<double>(count) / absl::ToDoubleSeconds(base::SteadyNow() - begin));
  return 0;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  CLI::App app("Decoder and model in a bare loop: images per second.");
  tutti::Options options;
  app.add_option("MODEL", options.model)->required();
  app.add_option("IMAGES", options.images)->required();
  app.add_option("--precision", options.precision);
  app.add_option("--workers", options.workers);
  app.add_option("--threads", options.threads);
  app.add_option("--batch", options.batch);
  app.add_option("--seconds", options.seconds);
  CLI11_PARSE(app, argc, argv);
  return tutti::Measure(options);
}

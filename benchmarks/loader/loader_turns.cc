// A contender of compare: images by tutti's loader, or by a plain full decode.
//
//   loader_turns tutti THREADS FOLDER [bf16|fp32] [last|planar]   random-resized crop 224, flip,
//                                                                 normalise
//   loader_turns decode THREADS FOLDER          libjpeg-turbo to RGB, every pixel, nothing else
//
// FOLDER holds a split "train" of any format. THREADS are at work in all, the caller's among them.
// A line with a number on standard input asks for as many times through the images; the answer is
// the number of images and the seconds that they took.
#include <cstdio>
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "base/deadline.h"
#include "runtime/data/loader.h"

namespace tutti::data {
namespace {

constexpr int kBatch = 64;

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "loader_turns: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T OrFail(absl::StatusOr<T> result) {
  if (!result.ok()) Fail(result.status());
  return *std::move(result);
}

// Keeps batches' memory from one turn's loader to the next.
class Pool {
 public:
  BatchMemory Memory() {
    next_ = 0;
    return [this](size_t bytes) {
      if (next_ == pieces_.size()) {
        constexpr std::align_val_t kAlignment{64};
        pieces_.emplace_back(static_cast<std::byte*>(::operator new(bytes, kAlignment)),
                             [](std::byte* memory) { ::operator delete(memory, kAlignment); });
      }
      return pieces_[next_++];
    };
  }

 private:
  std::vector<std::shared_ptr<std::byte>> pieces_;
  size_t next_ = 0;
};

class Loading {
 public:
  Loading(std::shared_ptr<const Dataset> dataset, int threads, bool fp32, bool planar)
      : dataset_(std::move(dataset)) {
    options_.global_batch = kBatch;
    options_.threads = threads - 1;
    options_.pixels = fp32 ? PixelType::kFloat32 : PixelType::kBFloat16;
    options_.layout = planar ? PixelLayout::kPlanar : PixelLayout::kChannelsLast;
    options_.augmentation = {.height = 224,
                             .width = 224,
                             .random_resized_crop = true,
                             .flip = Flip::kByChance,
                             .mean = {0.485f, 0.456f, 0.406f},
                             .stddev = {0.229f, 0.224f, 0.225f}};
  }

  int64_t Turn(int epochs) {
    options_.memory = pool_.Memory();
    const auto loader = OrFail(MakeLoader(dataset_, options_));
    loader->Seek(epoch_, 0);
    epoch_ += epochs;
    const int64_t steps = epochs * loader->steps_per_epoch();
    for (int64_t i = 0; i < steps; ++i) {
      OrFail(loader->Next(base::Deadline::After(absl::Seconds(60))));
    }
    return steps * kBatch;
  }

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  Pool pool_;
  int64_t epoch_ = 0;
};

class Decoding {
 public:
  Decoding(std::shared_ptr<const Dataset> dataset, int threads) : threads_(threads) {
    std::string scratch;
    for (int64_t i = 0; i < dataset->size(); ++i) {
      const absl::string_view bytes = OrFail(dataset->Encoded(i, scratch));
      if (bytes.substr(0, 2) == "\xff\xd8") images_.emplace_back(bytes);
    }
  }

  int64_t Turn(int epochs) {
    const size_t wanted = static_cast<size_t>(epochs) * images_.size();
    std::atomic<size_t> next{0};
    const auto work = [&] {
      std::vector<uint8_t> pixels;
      for (size_t i; (i = next.fetch_add(1)) < wanted;) {
        Decode(images_[i % images_.size()], pixels);
      }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads_; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    return static_cast<int64_t>(wanted);
  }

 private:
  static void Decode(const std::string& jpeg, std::vector<uint8_t>& pixels) {
    jpeg_decompress_struct info;
    jpeg_error_mgr errors;  // ends the program on an error: the images are sound
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
    jpeg_read_header(&info, TRUE);
    info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    const size_t stride = size_t{info.output_width} * static_cast<size_t>(info.output_components);
    if (pixels.size() < stride * info.output_height) pixels.resize(stride * info.output_height);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = pixels.data() + info.output_scanline * stride;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
  }

  const int threads_;
  std::vector<std::string> images_;
};

template <typename Contender>
int Serve(Contender contender) {
  std::puts("ready");
  std::fflush(stdout);
  int epochs = 0;
  while (std::scanf("%d", &epochs) == 1) {
    const absl::Time began = absl::Now();
    const int64_t images = contender.Turn(epochs);
    std::printf("%lld %.6f\n", static_cast<long long>(images),
                absl::ToDoubleSeconds(absl::Now() - began));
    std::fflush(stdout);
  }
  return 0;
}

int Main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 3) Fail(absl::InvalidArgumentError("usage: see loader_turns.cc"));
  const auto has = [&](absl::string_view word) {
    return std::find(words.begin() + 3, words.end(), word) != words.end();
  };
  const int threads = std::max(1, std::atoi(words[1].c_str()));
  const auto dataset = OrFail(OpenDataset(words[2], "train"));
  if (words[0] == "decode") return Serve(Decoding(dataset, threads));
  return Serve(Loading(dataset, threads, has("fp32"), has("planar")));
}

}  // namespace
}  // namespace tutti::data

int main(int argc, char** argv) { return tutti::data::Main(argc, argv); }

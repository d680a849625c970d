// Loader reads shards and makes batches. Which samples a rank sees at a step is a pure function of
// (seed, epoch, step, rank, world size); how they are augmented is one of (seed, epoch, sample)
// alone, and how they are mixed one of (seed, epoch, step), so that the mini-batch over all ranks
// is the same for every number of ranks.
//
// No libtorch here: a batch is plain memory, ready to be viewed as a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/data/dataset.h"

namespace tutti::data {

// Left and right change places. By chance: of every other image. Alternately: of an image in
// every other epoch, and whether in the even ones (from 0) is by chance, of (seed, sample), so that
// two epochs show both of its sides (Jordan 2024, "94% on CIFAR-10 in 3.29 Seconds on a Single
// GPU", section 3.6).
enum class Flip { kNever, kByChance, kAlternately, kAlways };

// At most one of pad_crop, random_resized_crop, resize and stretch; with none, images must have the
// batch's size. Resizing is bilinear with antialiasing (augment/resample.h says what it equals).
// Pixels become (p / 255 - mean) / stddev.
struct Augmentation {
  int height = 32;  // of the images in a batch
  int width = 32;
  int pad_crop = 0;  // > 0: pad by this on every side with black, crop at random (CIFAR recipe)
  bool random_resized_crop = false;  // Inception-style crop (scale least_area-1, ratio 3/4-4/3)
  double least_area = 0.08;          // of that, in parts of the image's
  int resize = 0;  // > 0: shorter side to this first, then centre crop (evaluation)
  // Images of another size than the batch's: their shorter side is brought to the batch's longer
  // one and the centre is cut out, in place of the copy or of pad_crop. False: they are an error.
  bool fit = false;
  bool stretch = false;  // all of the image, its sides' ratio as may be
  Flip flip = Flip::kNever;
  // Probability of erasing a rectangle: 2 to 33 % of the image, of a ratio between 0.3 and 3.3,
  // becomes the mean (Zhong et al. 2017, "Random Erasing Data Augmentation").
  double erase = 0;
  float mean[3] = {0, 0, 0};  // of pixels in 0..1, RGB
  float stddev[3] = {1, 1, 1};
};

// Images of labels alone become mixtures of two (augment/mix.h). With both, a step takes one of
// the two, by a coin.
struct Mixing {
  double mixup = 0, cutmix = 0;  // alpha of the shares' Beta(alpha, alpha); 0: not
  bool any() const { return mixup > 0 || cutmix > 0; }
};

enum class PixelType { kFloat32, kBFloat16 };

// The layout of an image in a batch: [height, width, 3], or [3, height, width].
enum class PixelLayout { kChannelsLast, kPlanar };

// Allocates memory for a batch's pixels or labels, aligned to 64 bytes.
using BatchMemory = std::function<std::shared_ptr<std::byte>(size_t bytes)>;

struct LoaderOptions {
  int global_batch = 128;  // samples per step over all ranks; rank r takes its r-th contiguous part
  int rank = 0;
  int world_size = 1;
  uint64_t seed = 1;
  bool shuffle = true;    // a new permutation every epoch; else the dataset's order
  bool drop_last = true;  // else the last step of an epoch is short (and may be empty on a rank)
  int mixed_parts = 16;   // of a dataset in parts (SamplerOptions::mixed)
  int threads = 1;        // decoding threads beside the caller's; 0: Next decodes
  int prefetch = 3;       // batches kept ready
  PixelType pixels = PixelType::kFloat32;  // bf16 rounds to nearest, halves to even
  PixelLayout layout = PixelLayout::kChannelsLast;
  // Without pixels, for a rank that only compares what others compute with the labels, as one of a
  // pipeline's later stages: no image is read or decoded, and batches are otherwise those of a
  // loader with pixels. Labels are those of the images that the sampler asks for, whether or not
  // they are readable: max_unreadable must be 0, here and on the ranks with pixels, whose labels
  // are those of replacements. For data sets of labels alone.
  bool labels_only = false;
  // Batches are those that Want asks for, in that order, and no others.
  bool on_demand = false;
  // Decoded images are kept up to this, for recipes that do not resize (32x32: 4 KB each, so that
  // this holds all of CIFAR-10). It changes the speed, never a batch.
  int64_t cache_bytes = int64_t{256} << 20;
  // Images that may be unreadable, on this rank since the loader was made, before a batch with
  // one is an error. Until then each is replaced by the next readable one of the dataset, so that
  // batches keep their size and depend on nothing else, and is named once through `on_unreadable`.
  // What a store does not give (Unavailable, FailedPrecondition) is an error, and no image's fault.
  int64_t max_unreadable = 0;
  // Called by Next, on its thread: "train-000002.tar:cat/0017.jpg: damaged JPEG: …".
  std::function<void(absl::string_view what)> on_unreadable;
  // Called by Next, on its thread, once `fit` has resized an image: "cat/18.jpg is 40x72, and not
  // 32x32".
  std::function<void(absl::string_view what)> on_fitted;
  BatchMemory memory;  // null: the loader's own. Asked for once, by MakeLoader
  Augmentation augmentation;
  Mixing mixing;
  // From this epoch on (from 0) images are neither erased nor mixed.
  int64_t plain_from = std::numeric_limits<int64_t>::max();
};

// One rank's part of one mini-batch. `pixels` is [count, height, width, 3] in memory
// (channels-last: a [count, 3, height, width] tensor of strides {H*W*3, 1, W*3, 3}), or
// [count, 3, height, width] if planar.
struct Batch {
  int64_t epoch = 0;
  int64_t step = 0;  // within the epoch
  int64_t count = 0;
  const void* pixels = nullptr;  // null: LoaderOptions::labels_only
  const int64_t* labels = nullptr;
  // Below 1: the images are mixed in pairs, that at 2 i with that at 2 i + 1, and a label counts as
  // much for its image, the rest being the other's. A last image without a partner is its own.
  float own_share = 1;
  // The masks of data sets that have them, [count, height, width]: a class for each pixel, 255
  // where it is unknown. They were cropped and scaled as their images, by the nearest pixel; beyond
  // the image the class is unknown.
  const uint8_t* masks = nullptr;
  // The boxes of data sets that have them, [count, most_boxes, 5]: class, left, top, right, bottom
  // in parts of the image; the class is -1 behind an image's last box. Objects whose centre was
  // cropped away are left out.
  const float* boxes = nullptr;
  int64_t most_boxes = 0;
  const int64_t* samples = nullptr;  // indices in the dataset, of replacements where there are any
};

// It is thread-compatible and has one consumer.
class Loader {
 public:
  virtual ~Loader() = default;
  virtual int64_t steps_per_epoch() const = 0;
  // Asks for a batch, which Next is to give behind those that were asked for before. Of a loader
  // on demand alone; Seek forgets what was asked for.
  virtual void Want(int64_t epoch, int64_t step) = 0;
  // Begins at any point of the sequence of batches (epoch and step from 0); drops what was
  // prefetched. Does not wait.
  virtual void Seek(int64_t epoch, int64_t step) = 0;
  // Returns the next batch; it runs on into the next epoch by itself. Its memory is valid until the
  // next call, aligned to 64 bytes. A batch with one unreadable sample too many is an error that
  // names epoch, step, shard and member; the call after it gives the batch after it.
  // DeadlineExceeded: the next call goes on with the same batch.
  virtual absl::StatusOr<Batch> Next(base::Deadline deadline) = 0;
  // Counts the different images of batches that Next gave which were unreadable and replaced.
  virtual int64_t unreadable() const = 0;
};

// Starts the threads. InvalidArgument names the option that cannot be.
absl::StatusOr<std::unique_ptr<Loader>> MakeLoader(std::shared_ptr<const Dataset> dataset,
                                                   const LoaderOptions& options);

}  // namespace tutti::data

// Dataset is a finite, indexed set of labelled images, still encoded. Immutable after opening;
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

// What a set says of its images: one class each; the class of every pixel; boxes around objects.
enum class Annotations { kLabels, kMasks, kBoxes };  // NameOf: annotation/annotation.h

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;
  virtual int64_t label(int64_t index) const = 0;  // 0 of sets without labels
  // Waits until label(index) is known, of sets that learn labels as they are read. Whoever has read
  // the image need not ask. Errors are those of Encoded that are no image's fault.
  virtual absl::Status AwaitLabel(int64_t) const { return absl::OkStatus(); }
  virtual Annotations annotations() const { return Annotations::kLabels; }
  // Returns a mask or boxes as they lie beside the image (annotation/annotation.h); empty: labels.
  // Valid as Encoded's.
  virtual absl::StatusOr<absl::string_view> Annotation(int64_t, std::string&) const { return ""; }
  virtual int64_t most_boxes() const { return 0; }  // of any image
  // Returns the encoded bytes (of a kind of decode/image_decoder.h); valid as long as the
  // dataset and until `scratch` changes, which sets that are not in memory read into.
  virtual absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const = 0;
  // Returns "train-000002.tar:cat/0017.jpg", for errors.
  virtual std::string Describe(int64_t index) const = 0;
  // Returns what of its files gives no sample, a sentence each for people; known once it is open.
  virtual std::vector<std::string> Remarks() const { return {}; }
  // Hints that Encoded(index) will be read soon; starts the read-ahead and returns at once.
  virtual void WillNeed(int64_t index) const {}
  // Returns how many consecutive samples lie together in each of its parts, of a set that is read
  // part by part (source/stream/streamed_shards.h): a sampler keeps to few of them at a time.
  // Empty: any sample can be read as soon as any other.
  virtual std::span<const int64_t> parts() const { return {}; }
  // Returns what tells such a set from others: its labels are not known before it was read.
  virtual std::string Fingerprint() const { return ""; }
  // Says which parts are read now and which after them, in that order; what is in neither may go.
  // Returns at once.
  virtual void WillVisit(std::span<const int64_t> now, std::span<const int64_t> next) const {}
};

// How the images of a folder are kept.
enum class DatasetFormat {
  kTarShards,
  kTfRecords,
  kImageFolder,
  kAnnotatedFolder,
  kCifar10,
  kIdx,
  kSynthetic
};
absl::string_view NameOf(DatasetFormat format);  // "tar shards", "TFRecord", ...

// How shards come from a store.
struct StreamOptions {
  // The folder that keeps them; empty: $TUTTI_DATA_CACHE, else tutti/data below $XDG_CACHE_HOME or
  // ~/.cache.
  std::filesystem::path cache;
  int64_t most_bytes = 0;         // of the disk that they take; 0: nine tenths of what is free
  std::filesystem::path program;  // empty: tutti-storage, as StreamClient finds it
};

struct OpenOptions {
  // The number from which the labels of TFRecords count; unset: told from the labels, see
  // OpenTfRecords.
  std::optional<int> first_label;
  StreamOptions stream;
};

// Opens the shards of a split that lie in a store, at an address as "s3://BUCKET/PATH", one by one
// as they are read (source/stream/streamed_shards.h).
absl::StatusOr<std::shared_ptr<const Dataset>> OpenStreamedShards(const std::string& address,
                                                                  absl::string_view split,
                                                                  const StreamOptions& options);

// Returns what `source` holds, by the names in it: "synthetic[:COUNTxSIDE[xCLASSES]]", an address
// of tar shards in a store, or a folder of one of the formats below. NotFound: no such folder, or
// nothing in it that is known.
absl::StatusOr<DatasetFormat> FormatOf(const std::string& source);

// Opens a split, "train" or "test" mostly. "test" is also found under the names "val" and
// "validation". Errors are those of the formats.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenDataset(const std::string& source,
                                                           absl::string_view split,
                                                           const OpenOptions& options = {});

// Opens tar shards in the WebDataset layout: consecutive members that share their path up to the
// first dot of its last component are one sample; `.jpg`, `.png` or what else ImageEndings names is
// the image, `.cls` its class as a decimal number, or `.mask.png`, `.mask.pgm` its mask, or
// `.boxes.txt` its boxes, in a set that has the same for all; other members are passed over.
//
// `folder` holds <split>-NNNNNN.tar, numbered from 0 without a gap, and classes.txt, one class name
// a line. Shards may be compressed (<split>-NNNNNN.tar.zst, .tar.gz, .tgz): these are unpacked into
// memory, plain ones are mapped and must not change while the dataset is open.
//
// Opening reads every header and label, but no image. NotFound: no such folder, split or
// classes.txt; DataLoss: a shard is cut short or is no tar archive (names shard and offset);
// InvalidArgument: a sample without image or label, a label that is no class (names the member).
// Masks are looked at when they are read.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTarShards(const std::filesystem::path& folder,
                                                             absl::string_view split);

// Opens files <split>-NNNNN-of-NNNNN of tf.train.Example records, as TensorFlow's scripts write
// ImageNet (source/tf_record/tf_example.h says which features count). Files that were written with
// GZIP or ZLIB compression, or end in .gz, are unpacked into memory. Classes are those of
// classes.txt; without it they are named by the records. The scripts count labels from 1. If
// `first_label` is unset: from 0 if that label occurs, from 1 if the number of classes occurs (or
// there is no classes.txt).
//
// Opening reads every record's length and features, but no image; an image's checksum is checked
// when it is read (DataLoss). NotFound: no such folder or file; FailedPrecondition: a file of the
// set is missing, or both counts of labels are possible; DataLoss: a file is cut short or damaged
// (names file and offset); InvalidArgument: a record without image or label, a label that is no
// class; in "train" without classes.txt a stray label (source/classes.h: names file and record).
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTfRecords(const std::filesystem::path& folder,
                                                             absl::string_view split,
                                                             std::optional<int> first_label = {});

// Opens <folder>/<split>/<class>/**: what ends as images do (ImageEndings), in the order of the
// names; classes are the folders' names in order, as torchvision's ImageFolder has them. An
// image is read when it is asked for. NotFound: no such folder; InvalidArgument: no class, or a
// class without an image (names it).
absl::StatusOr<std::shared_ptr<const Dataset>> OpenImageFolder(const std::filesystem::path& folder,
                                                               absl::string_view split);

// Opens <folder>/<split>/images/**: images as above, in the order of the names, and for each the
// mask <split>/masks/**/NAME.png (.pgm) or the boxes <split>/boxes/**/NAME.txt of the same path;
// <folder>/classes.txt. Boxes are read at opening, images and masks when they are asked for.
// NotFound: no such folder or classes.txt; InvalidArgument: no image, one without its mask or
// boxes, masks and boxes both, boxes that ParseBoxes refuses (names file and line).
absl::StatusOr<std::shared_ptr<const Dataset>> OpenAnnotatedFolder(
    const std::filesystem::path& folder, absl::string_view split);

// Opens CIFAR-10's binary version: data_batch_1.bin and so on for "train", test_batch.bin for
// "test", and batches.meta.txt, here or in cifar-10-batches-bin. Images are given as PNM. DataLoss:
// a file is cut short; InvalidArgument: a label above 9 (names file and record).
absl::StatusOr<std::shared_ptr<const Dataset>> OpenCifar10(const std::filesystem::path& folder,
                                                           absl::string_view split);

// Opens MNIST and sets like it: train-images-idx3-ubyte and train-labels-idx1-ubyte, t10k-… for
// "test", also with .gz, here, in raw/ or MNIST/raw/. Classes are those of classes.txt, or the
// digits. Images are given as PNM. Errors as OpenCifar10, and stray labels as OpenTfRecords.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenIdx(const std::filesystem::path& folder,
                                                       absl::string_view split);

// Images of noise around a colour that belongs to the class, made when they are asked for:
// `count` of side x side, as PNM. For measuring what comes after the loader.
struct SyntheticOptions {
  int64_t count = 1280;
  int side = 224;
  int classes = 1000;
};
std::shared_ptr<const Dataset> OpenSynthetic(const SyntheticOptions& options);

}  // namespace tutti::data

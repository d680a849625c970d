#include "runtime/data/pack/survey.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "runtime/data/annotation/annotation.h"
#include "runtime/data/pack/parallel_for.h"

namespace tutti::data {
namespace {

// What one thread has seen. Sums are whole numbers, so that their order does not matter.
struct Sums {
  Survey survey;
  ImageDecoder decoder;
  AnnotationReader annotations;
  std::string scratch;
  uint64_t pixels = 0;
  std::array<uint64_t, 3> levels = {}, squares = {};

  void AddPixels(const ImageView& image) {
    const uint64_t count = static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height);
    pixels += count;
    for (uint64_t i = 0; i < count; ++i) {
      for (size_t c = 0; c < 3; ++c) {
        const uint64_t level = image.pixels[i * kBytesPerPixel + c];
        levels[c] += level;
        squares[c] += level * level;
      }
    }
  }
};

absl::Status LookAt(const Dataset& dataset, int64_t index, bool decode, Sums& sums) {
  const bool labelled = dataset.annotations() == Annotations::kLabels;
  std::vector<int64_t>& of_class = sums.survey.of_class;
  if (labelled) TUTTI_RETURN_IF_ERROR(sums.annotations.Count(dataset, index, {}, of_class));
  TUTTI_ASSIGN_OR_RETURN(const absl::string_view encoded, dataset.Encoded(index, sums.scratch));
  TUTTI_ASSIGN_OR_RETURN(const ImageSize size, sums.decoder.Open(encoded));
  if (decode) {
    TUTTI_ASSIGN_OR_RETURN(const ImageView image, sums.decoder.Decode());
    sums.AddPixels(image);
  }
  Survey& survey = sums.survey;
  if (!labelled) TUTTI_RETURN_IF_ERROR(sums.annotations.Count(dataset, index, size, of_class));
  survey.widths.push_back(size.width);
  survey.heights.push_back(size.height);
  survey.bytes.push_back(static_cast<int64_t>(encoded.size()));
  ++survey.of_kind[sums.decoder.codec().name];
  return absl::OkStatus();
}

void Append(std::vector<int64_t>& to, const std::vector<int64_t>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

Survey Join(std::vector<Sums>& parts) {
  Survey all;
  all.of_class.resize(parts[0].survey.of_class.size());
  uint64_t pixels = 0;
  std::array<uint64_t, 3> levels = {}, squares = {};
  for (Sums& part : parts) {
    Append(all.widths, part.survey.widths);
    Append(all.heights, part.survey.heights);
    Append(all.bytes, part.survey.bytes);
    for (size_t c = 0; c < all.of_class.size(); ++c) all.of_class[c] += part.survey.of_class[c];
    for (const auto& [kind, count] : part.survey.of_kind) all.of_kind[kind] += count;
    std::move(part.survey.unreadable.begin(), part.survey.unreadable.end(),
              std::back_inserter(all.unreadable));
    pixels += part.pixels;
    for (size_t c = 0; c < 3; ++c) {
      levels[c] += part.levels[c];
      squares[c] += part.squares[c];
    }
  }
  for (auto* sizes : {&all.widths, &all.heights, &all.bytes}) {
    std::sort(sizes->begin(), sizes->end());
  }
  std::sort(all.unreadable.begin(), all.unreadable.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  for (size_t c = 0; c < 3 && pixels > 0; ++c) {
    const double count = static_cast<double>(pixels);
    const double mean = static_cast<double>(levels[c]) / count;
    const double variance = static_cast<double>(squares[c]) / count - mean * mean;
    all.mean[c] = mean / 255;
    all.stddev[c] = std::sqrt(std::max(0.0, variance)) / 255;
  }
  return all;
}

}  // namespace

Survey SurveyOf(const Dataset& dataset, const SurveyOptions& options) {
  std::vector<Sums> parts(static_cast<size_t>(std::max(1, options.threads)));
  for (Sums& part : parts) part.survey.of_class.resize(dataset.classes().size());
  ParallelFor(options.threads, 0, dataset.size(), [&](size_t thread, int64_t i) {
    const absl::Status status = LookAt(dataset, i, options.decode, parts[thread]);
    if (status.ok()) return;
    parts[thread].survey.unreadable.push_back({i, base::Annotate(status, dataset.Describe(i))});
  });
  Survey survey = Join(parts);
  survey.images = dataset.size();
  return survey;
}

}  // namespace tutti::data

// OpenSynthetic: images that cost next to nothing to read.
#include "absl/strings/str_cat.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/pnm.h"
#include "runtime/data/sampling/philox.h"
#include "runtime/data/source/raw/raw_images.h"

namespace tutti::data {
namespace {

class Synthetic final : public Dataset {
 public:
  explicit Synthetic(const SyntheticOptions& options)
      : options_(options), classes_(NumberedClasses(options.classes)) {}

  int64_t size() const override { return options_.count; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return index % options_.classes; }
  std::string Describe(int64_t index) const override { return absl::StrCat("synthetic:", index); }

  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const override {
    scratch = PnmHeader({options_.side, options_.side}, 3);
    const PhiloxCounter color = Philox({static_cast<uint32_t>(label(index))}, {1, 0});
    uint64_t state = static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15 + 1;
    const auto side = static_cast<size_t>(options_.side);
    const size_t begin = scratch.size();
    scratch.resize(begin + 3 * side * side);
    for (size_t i = 0; i < side * side; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;  // Knuth's, MMIX
      for (size_t c = 0; c < 3; ++c) {
        const auto noise = static_cast<uint32_t>(state >> (40 + 8 * c)) & 0x3F;
        scratch[begin + 3 * i + c] = static_cast<char>((color[c] & 0x7F) + 32 + noise);
      }
    }
    return absl::string_view(scratch);
  }

 private:
  const SyntheticOptions options_;
  const std::vector<std::string> classes_;
};

}  // namespace

std::shared_ptr<const Dataset> OpenSynthetic(const SyntheticOptions& options) {
  return std::make_shared<Synthetic>(options);
}

}  // namespace tutti::data

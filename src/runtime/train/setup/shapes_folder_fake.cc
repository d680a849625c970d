#include "runtime/train/setup/shapes_folder_fake.h"

#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/data/decode/pnm.h"
#include "runtime/tasks/shapes_fake.h"

namespace tutti::train {
namespace {

void WriteOrThrowFile(const std::filesystem::path& path, const std::string& content) {
  absl::Status status = base::MakeDirectories(path.parent_path());
  status.Update(base::WriteFileAtomic(path, content));
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// [channels, side, side] of bytes.
std::string PnmOf(const torch::Tensor& levels) {
  const torch::Tensor rows = levels.permute({1, 2, 0}).contiguous();
  const auto side = static_cast<int>(levels.size(1));
  return absl::StrCat(
      data::PnmHeader({side, side}, static_cast<int>(levels.size(0))),
      absl::string_view(reinterpret_cast<const char*>(rows.const_data_ptr()), rows.nbytes()));
}

std::string BoxesOf(const torch::Tensor& boxes) {
  std::string text;
  for (int64_t i = 0; i < boxes.size(0) && boxes[i][0].item<float>() >= 0; ++i) {
    const float* const box = boxes[i].const_data_ptr<float>();
    absl::StrAppend(&text, static_cast<int>(box[0]), " ", (box[1] + box[3]) / 2, " ",
                    (box[2] + box[4]) / 2, " ", box[3] - box[1], " ", box[4] - box[2], "\n");
  }
  return text;
}

void WriteSplit(const std::filesystem::path& folder, bool masks, const tasks::Shapes& shapes) {
  const torch::Tensor levels = (shapes.images * 60 + 128).clamp(0, 255).to(torch::kUInt8);
  for (int64_t i = 0; i < levels.size(0); ++i) {
    const std::string name = absl::StrCat(i);
    WriteOrThrowFile(folder / "images" / (name + ".ppm"), PnmOf(levels[i]));
    if (masks) {
      WriteOrThrowFile(folder / "masks" / (name + ".pgm"),
                       PnmOf(shapes.masks[i].to(torch::kUInt8).unsqueeze(0)));
    } else {
      WriteOrThrowFile(folder / "boxes" / (name + ".txt"), BoxesOf(shapes.boxes[i]));
    }
  }
}

}  // namespace

void WriteShapes(const std::filesystem::path& folder, data::Annotations annotations,
                 const ShapesFolder& shapes) {
  const bool masks = annotations == data::Annotations::kMasks;
  WriteSplit(folder / "train", masks, tasks::DrawShapes(shapes.train, shapes.side, /*seed=*/1));
  WriteSplit(folder / "test", masks, tasks::DrawShapes(shapes.test, shapes.side, /*seed=*/2));
  WriteOrThrowFile(folder / "classes.txt", masks ? "background\nsquare\ndisc\n" : "square\ndisc\n");
}

}  // namespace tutti::train

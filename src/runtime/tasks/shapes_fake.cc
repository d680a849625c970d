#include "runtime/tasks/shapes_fake.h"

#include <ATen/CPUGeneratorImpl.h>

#include <vector>

namespace tutti::tasks {
namespace {

using torch::Tensor;

constexpr int64_t kMostObjects = 3;

class Drawing {
 public:
  Drawing(int64_t size, at::Generator& generator) : size_(size), generator_(generator) {
    image = torch::rand({3, size, size}, generator) - 1.5;
    mask = torch::zeros({size, size}, torch::kInt64);
    boxes = torch::full({kMostObjects, 5}, -1.0f);
    const int64_t objects = Below(kMostObjects) + 1;
    for (int64_t i = 0; i < objects; ++i) Add(i, Below(2));
  }

  Tensor image, mask, boxes;

 private:
  int64_t Below(int64_t n) {
    return torch::randint(0, n, {1}, generator_, torch::kInt64).item<int64_t>();
  }

  // A square (0) or a disc (1), each with a colour of its own.
  void Add(int64_t i, int64_t kind) {
    const int64_t side = size_ / 4 + Below(size_ / 4);
    const int64_t left = Below(size_ - side), top = Below(size_ - side);
    const Tensor shape = kind == 0 ? torch::ones({side, side}, torch::kBool) : Disc(side);
    const auto region = [&](const Tensor& t) {
      return t.narrow(-1, left, side).narrow(-2, top, side);
    };
    region(image[kind]).masked_fill_(shape, 2.0);
    region(image[1 - kind]).masked_fill_(shape, 0.0);
    region(mask).masked_fill_(shape, kind + 1);
    const auto part = [&](int64_t pixels) {
      return static_cast<float>(pixels) / static_cast<float>(size_);
    };
    boxes[i].copy_(torch::tensor(
        {static_cast<float>(kind), part(left), part(top), part(left + side), part(top + side)}));
  }

  static Tensor Disc(int64_t side) {
    const Tensor along =
        (torch::arange(side) + 0.5) / (0.5 * static_cast<double>(side)) - 1;  // from the centre
    return (along.square().unsqueeze(0) + along.square().unsqueeze(1)).le(1);
  }

  const int64_t size_;
  at::Generator& generator_;
};

}  // namespace

Shapes DrawShapes(int64_t count, int64_t size, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::vector<Tensor> images, masks, boxes;
  for (int64_t i = 0; i < count; ++i) {
    const Drawing drawing(size, generator);
    images.push_back(drawing.image);
    masks.push_back(drawing.mask);
    boxes.push_back(drawing.boxes);
  }
  return {torch::stack(images).contiguous(torch::MemoryFormat::ChannelsLast), torch::stack(masks),
          torch::stack(boxes)};
}

}  // namespace tutti::tasks

#include "runtime/comm/collective/node/plain_buffer.h"

#include <utility>

#include "base/status.h"
#include "runtime/comm/collective/node/segment.h"
#include "runtime/comm/transport/sealed_file.h"

namespace tutti::comm {
namespace {

class PlainBuffer final : public SharedBuffer {
 public:
  explicit PlainBuffer(Segment memory) : memory_(std::move(memory)) {}
  void* data() override { return memory_.data(); }
  size_t size() const override { return memory_.size(); }

 private:
  const Segment memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SharedBuffer>> AllocatePlain(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("a shared buffer of 0 bytes");
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd file, MakeSealedFile("tutti-buffer", bytes));
  TUTTI_ASSIGN_OR_RETURN(Segment memory, Segment::Map(file.get(), bytes));
  return std::make_unique<PlainBuffer>(std::move(memory));
}

}  // namespace tutti::comm

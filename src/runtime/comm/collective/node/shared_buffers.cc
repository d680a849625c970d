#include "runtime/comm/collective/node/shared_buffers.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "runtime/comm/rendezvous/wire/descriptors.h"
#include "runtime/comm/transport/sealed_file.h"

namespace tutti::comm {
namespace {

using base::UniqueFd;

// With a descriptor it announces a buffer, without one it takes it back.
struct Letter {
  int32_t from = 0;
  uint64_t buffer = 0;
  uint64_t size = 0;
};

// One message, whole or not at all. False if the letterbox is full or closed.
bool Post(int letterbox, Letter letter, int file) {
  return SendWithDescriptor(letterbox, &letter, sizeof(letter), file, MSG_DONTWAIT) ==
         sizeof(letter);
}

// False if there is none. A letter of another length has `from` -1.
bool Take(int letters, Letter& letter, UniqueFd& file) {
  const ssize_t n = ReceiveWithDescriptor(letters, &letter, sizeof(letter), file, MSG_DONTWAIT);
  if (n <= 0) return false;
  if (n != sizeof(letter)) letter.from = -1;
  return true;
}

}  // namespace

// This rank's buffers, which SharedBuffers and each of the buffers keep alive.
class SharedBuffers::Own {
 public:
  Own(int self, std::vector<UniqueFd> letterboxes)
      : self_(self), letterboxes_(std::move(letterboxes)) {}

  uint64_t Add(const std::byte* begin, size_t size, int file) {
    const std::lock_guard lock(mutex_);
    const uint64_t number = ++last_;
    Buffer buffer{number, size, !detached_, true, file};
    for (size_t rank = 0; rank < letterboxes_.size(); ++rank) {
      if (static_cast<int>(rank) == self_) continue;
      buffer.shared = buffer.shared && Post(letterboxes_[rank].get(), {self_, number, size}, file);
    }
    buffers_[begin] = buffer;
    return number;
  }

  void Remove(const std::byte* begin, uint64_t number) {
    const std::lock_guard lock(mutex_);
    buffers_.erase(begin);
    for (size_t rank = 0; rank < letterboxes_.size(); ++rank) {
      if (static_cast<int>(rank) != self_) Post(letterboxes_[rank].get(), {self_, number, 0}, -1);
    }
  }

  BufferLocation Find(const std::byte* data, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto next = buffers_.upper_bound(data);
    if (next == buffers_.begin()) return {};
    const auto& [begin, buffer] = *std::prev(next);
    const size_t offset = static_cast<size_t>(data - begin);
    if (!buffer.shared || offset > buffer.size || bytes > buffer.size - offset) return {};
    return {buffer.number, offset, buffer.is_new};
  }

  void SetReached(uint64_t number, bool by_all) {
    const std::lock_guard lock(mutex_);
    for (auto& [begin, buffer] : buffers_) {
      if (buffer.number != number) continue;
      buffer.is_new = false;
      buffer.shared = by_all;
    }
  }

  void Detach() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(detached_, true)) return;
    for (auto& [begin, buffer] : buffers_) {
      buffer.shared = false;
      const absl::Status status =
          MakePrivate(const_cast<std::byte*>(begin), buffer.size, buffer.file);
      if (!status.ok()) {
        spdlog::error("a buffer stays shared with ranks that are lost: {}",
                      std::string(status.message()));
      }
    }
  }

 private:
  struct Buffer {
    uint64_t number;
    size_t size;
    bool shared;
    bool is_new;
    int file;  // the allocation's
  };

  const int self_;
  const std::vector<UniqueFd> letterboxes_;
  std::mutex mutex_;  // guards what follows
  uint64_t last_ = 0;
  bool detached_ = false;
  std::map<const std::byte*, Buffer> buffers_;  // by their first byte
};

class SharedBuffers::Allocation final : public SharedBuffer {
 public:
  Allocation(std::shared_ptr<Own> own, UniqueFd file, Segment memory)
      : own_(std::move(own)),
        file_(std::move(file)),
        memory_(std::move(memory)),
        number_(own_->Add(memory_.data(), memory_.size(), file_.get())) {}
  ~Allocation() override {
    own_->Remove(memory_.data(), number_);
    ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                static_cast<off_t>(memory_.size()));
  }
  void* data() override { return memory_.data(); }
  size_t size() const override { return memory_.size(); }

 private:
  const std::shared_ptr<Own> own_;
  const UniqueFd file_;
  const Segment memory_;
  const uint64_t number_;
};

SharedBuffers::SharedBuffers(int self, std::vector<UniqueFd> letterboxes, UniqueFd letters)
    : letters_(std::move(letters)),
      mapped_(letterboxes.size()),
      own_(std::make_shared<Own>(self, std::move(letterboxes))) {}

SharedBuffers::~SharedBuffers() = default;

absl::StatusOr<std::unique_ptr<SharedBuffer>> SharedBuffers::Allocate(size_t bytes) {
  if (bytes == 0) return absl::InvalidArgumentError("a shared buffer of 0 bytes");
  ReadLetters();
  TUTTI_ASSIGN_OR_RETURN(UniqueFd file, MakeSealedFile("tutti-buffer", bytes));
  TUTTI_ASSIGN_OR_RETURN(Segment memory, Segment::Map(file.get(), bytes));
  return std::make_unique<Allocation>(own_, std::move(file), std::move(memory));
}

BufferLocation SharedBuffers::Find(const std::byte* data, size_t bytes) const {
  return own_->Find(data, bytes);
}

void SharedBuffers::SetReached(const BufferLocation& own, bool by_all) {
  own_->SetReached(own.buffer, by_all);
}

void SharedBuffers::Detach() { own_->Detach(); }

absl::StatusOr<std::byte*> SharedBuffers::Map(int peer, const BufferLocation& where, size_t bytes) {
  auto found = mapped_[peer].find(where.buffer);
  if (found == mapped_[peer].end()) {
    ReadLetters();
    found = mapped_[peer].find(where.buffer);
  }
  if (found == mapped_[peer].end()) return absl::NotFoundError("a buffer that was not announced");
  const Segment& memory = found->second;
  if (where.offset > memory.size() || bytes > memory.size() - where.offset) {
    return absl::DataLossError("a place outside of its buffer");
  }
  return memory.data() + where.offset;
}

void SharedBuffers::Tidy() {
  for (const auto& [rank, buffer] : given_up_) mapped_[rank].erase(buffer);
  given_up_.clear();
}

void SharedBuffers::ReadLetters() {
  Letter letter;
  UniqueFd file;
  for (; Take(letters_.get(), letter, file); file.reset()) {
    if (letter.from < 0 || letter.from >= static_cast<int>(mapped_.size())) continue;
    if (!file.valid()) {
      given_up_.emplace_back(letter.from, letter.buffer);
      continue;
    }
    auto memory = Segment::Map(file.get(), letter.size);
    if (memory.ok()) mapped_[letter.from].try_emplace(letter.buffer, *std::move(memory));
  }
}

}  // namespace tutti::comm

// Gives SharedBuffers what a rank of the same node says about its buffers, in letters and where it
// says that its data lie: it is refused or leads into the memory that came with it, never outside.
// However many files come with a letter, none stays open.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/comm/collective/node/shared_buffers.h"

namespace {

using tutti::base::UniqueFd;

// Takes the input apart; zeros when it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t Byte() {
    uint8_t byte = 0;
    Take(&byte, 1);
    return byte;
  }
  template <typename T>
  T As() {
    T value = {};
    Take(&value, sizeof(value));
    return value;
  }
  size_t Take(void* into, size_t bytes) {
    const size_t n = std::min(bytes, size_);
    std::memcpy(into, data_, n);
    data_ += n;
    size_ -= n;
    return n;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

UniqueFd File(bool sealed, size_t size) {
  UniqueFd file(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) std::abort();
  if (sealed) ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return file;
}

void SendLetter(int box, Input& input) {
  const uint8_t how = input.Byte();
  uint8_t letter[64];
  iovec data = {letter, input.Take(letter, how & 1 ? input.Byte() % 64 : 24)};
  const UniqueFd file = File(how & 2, 4096u * (how >> 6));
  const int descriptors[3] = {file.get(), file.get(), file.get()};
  const size_t bytes = sizeof(int) * (1 + (how >> 4 & 3) % 3);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(descriptors))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (how & 4) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors, bytes);
  }
  [[maybe_unused]] const ssize_t n = ::sendmsg(box, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The lowest that is free.
int NextDescriptor() { return UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)).get(); }

void Correspond(const uint8_t* data, size_t size) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  const UniqueFd box(ends[1]);
  tutti::comm::SharedBuffers buffers(0, std::vector<UniqueFd>(3), UniqueFd(ends[0]));
  for (Input input(data, size); !input.empty();) {
    const uint8_t what = input.Byte();
    if (what % 4 == 0) {
      SendLetter(box.get(), input);
    } else if (what % 4 == 1) {
      buffers.Tidy();
    } else {
      const auto where = input.As<tutti::comm::BufferLocation>();
      const size_t bytes = what & 4 ? input.As<uint64_t>() : input.Byte();
      const auto place = buffers.Map(1 + (what >> 3) % 2, where, bytes);
      if (!place.ok() || bytes == 0) continue;
      (*place)[0] = (*place)[bytes - 1];
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const int before = NextDescriptor();
  Correspond(data, size);
  if (NextDescriptor() != before) std::abort();
  return 0;
}

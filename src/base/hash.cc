#include "base/hash.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::base {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL has no SHA-256");
  }
}

Sha256::~Sha256() = default;

void Sha256::Update(absl::string_view bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
  return digest;
}

Sha256Digest Sha256Of(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

absl::StatusOr<Sha256Digest> Sha256OfFile(const std::filesystem::path& path) {
  TUTTI_ASSIGN_OR_RETURN(UniqueFd fd, Open(path, O_RDONLY));
  Sha256 hash;
  std::vector<char> block(1 << 20);
  while (true) {
    const ssize_t n = ::read(fd.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(absl::StrCat("read ", path.string()));
    if (n == 0) return hash.Finish();
    hash.Update({block.data(), static_cast<size_t>(n)});
  }
}

Sha256Digest HmacSha256(absl::string_view key, absl::string_view message) {
  Sha256Digest digest;
  unsigned int length = digest.size();
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(),
       &length);
  return digest;
}

bool EqualInConstantTime(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string Hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

namespace {

// Where the call is refused, as by a filter of system calls that does not know it, or fails.
void ReadRandomDevice(uint8_t* to, size_t count) {
  const auto device = Open("/dev/urandom", O_RDONLY);
  for (size_t filled = 0; filled < count;) {
    const ssize_t n = device.ok() ? ::read(device->get(), to + filled, count - filled) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw std::runtime_error("the system gives no random bytes");
    filled += static_cast<size_t>(n);
  }
}

}  // namespace

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  auto* const to = reinterpret_cast<uint8_t*>(bytes.data());
  // The kernel's own generator: OpenSSL's is seeded by it and takes many times as long.
  for (size_t filled = 0; filled < count;) {
    const ssize_t n = ::getrandom(to + filled, count - filled, 0);
    if (n < 0 && errno != EINTR) {
      ReadRandomDevice(to + filled, count - filled);
      break;
    }
    if (n > 0) filled += static_cast<size_t>(n);
  }
  return bytes;
}

std::string RandomHex(size_t count) {
  const std::string bytes = RandomBytes(count);
  return Hex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace tutti::base

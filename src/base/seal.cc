#include "base/seal.h"

#include <openssl/evp.h>

#include <memory>

#include "base/hash.h"

namespace tutti::base {
namespace {

constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

absl::Status CheckKey(absl::string_view key) {
  if (key.size() == kSealKeyBytes) return absl::OkStatus();
  return absl::InvalidArgumentError("a key has 32 bytes");
}

}  // namespace

absl::StatusOr<std::string> Seal(absl::string_view key, absl::string_view text,
                                 absl::string_view belongs_to) {
  if (const absl::Status status = CheckKey(key); !status.ok()) return status;
  const std::string nonce = RandomBytes(kNonceBytes);
  std::string sealed(text.size(), '\0');
  std::string tag(kTagBytes, '\0');
  const Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int length = 0;
  const bool done =
      context != nullptr &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) ==
          1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &length, Bytes(belongs_to),
                        static_cast<int>(belongs_to.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), Bytes(sealed), &length, Bytes(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), Bytes(tag), &length) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, Bytes(tag)) == 1;
  if (!done) return absl::InternalError("OpenSSL does not encrypt with AES-256-GCM");
  return nonce + sealed + tag;
}

absl::StatusOr<std::string> Unseal(absl::string_view key, absl::string_view sealed,
                                   absl::string_view belongs_to) {
  if (const absl::Status status = CheckKey(key); !status.ok()) return status;
  const absl::Status other = absl::DataLossError("not sealed with this key, or changed since");
  if (sealed.size() < kNonceBytes + kTagBytes) return other;
  const absl::string_view nonce = sealed.substr(0, kNonceBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  sealed = sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
  std::string text(sealed.size(), '\0');
  const Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int length = 0;
  const bool done =
      context != nullptr &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) ==
          1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &length, Bytes(belongs_to),
                        static_cast<int>(belongs_to.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), Bytes(text), &length, Bytes(sealed),
                        static_cast<int>(sealed.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, Bytes(tag)) == 1;
  unsigned char rest[16];
  if (!done || EVP_DecryptFinal_ex(context.get(), rest, &length) != 1) return other;
  return text;
}

}  // namespace tutti::base

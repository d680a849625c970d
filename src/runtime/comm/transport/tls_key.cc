#include "runtime/comm/transport/tls_key.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr char kLabel[] = "tutti comm tls 1.3 psk";
constexpr unsigned char kIdentity[] = "tutti";
constexpr size_t kIdentityBytes = sizeof(kIdentity) - 1;
constexpr unsigned char kAes128GcmSha256[] = {0x13, 0x01};  // its IANA number

using Key = std::array<unsigned char, 32>;

absl::StatusOr<Key> DeriveKey(absl::string_view token) {
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> hkdf(
      EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr), &EVP_PKEY_CTX_free);
  const auto* const secret = reinterpret_cast<const unsigned char*>(token.data());
  const auto* const label = reinterpret_cast<const unsigned char*>(kLabel);
  Key key;
  size_t length = key.size();
  if (hkdf == nullptr || EVP_PKEY_derive_init(hkdf.get()) <= 0 ||
      EVP_PKEY_CTX_set_hkdf_md(hkdf.get(), EVP_sha256()) <= 0 ||
      EVP_PKEY_CTX_set1_hkdf_key(hkdf.get(), secret, static_cast<int>(token.size())) <= 0 ||
      EVP_PKEY_CTX_add1_hkdf_info(hkdf.get(), label, sizeof(kLabel) - 1) <= 0 ||
      EVP_PKEY_derive(hkdf.get(), key.data(), &length) <= 0) {
    return TlsError(absl::StatusCode::kInternal, "derive the key of TLS");
  }
  return key;
}

// Where a context keeps the key for the callbacks, which OpenSSL calls during a handshake.
int KeyIndex() {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* key, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<Key*>(key); });
  return index;
}

// A session that was never had: TLS 1.3 resumes it, and so proves that both sides know its secret.
SSL_SESSION* SessionOf(SSL* ssl) {
  const auto* const key =
      static_cast<const Key*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), KeyIndex()));
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kAes128GcmSha256);
  SSL_SESSION* const session = SSL_SESSION_new();
  if (key != nullptr && cipher != nullptr && session != nullptr &&
      SSL_SESSION_set1_master_key(session, key->data(), key->size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

int UseSession(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* length,
               SSL_SESSION** session) {
  *session = SessionOf(ssl);
  *identity = kIdentity;
  *length = kIdentityBytes;
  return *session != nullptr ? 1 : 0;
}

int FindSession(SSL* ssl, const unsigned char* identity, size_t length, SSL_SESSION** session) {
  const bool ours = length == kIdentityBytes && std::memcmp(identity, kIdentity, length) == 0;
  *session = ours ? SessionOf(ssl) : nullptr;
  return 1;  // without a session the handshake fails: there is no certificate
}

}  // namespace

absl::Status TlsError(absl::StatusCode code, absl::string_view what) {
  char text[256] = "unknown";
  const unsigned long error = ERR_peek_last_error();
  if (error != 0) ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return absl::Status(code, absl::StrCat(what, ": ", text));
}

absl::StatusOr<SslContext> TlsContext(Side side, absl::string_view token) {
  TUTTI_ASSIGN_OR_RETURN(const Key key, DeriveKey(token));
  const bool opener = side == Side::kOpener;
  SslContext context(SSL_CTX_new(opener ? TLS_client_method() : TLS_server_method()));
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") != 1 ||
      SSL_CTX_set_num_tickets(context.get(), 0) != 1 ||
      SSL_CTX_set_ex_data(context.get(), KeyIndex(), new Key(key)) != 1) {
    return TlsError(absl::StatusCode::kInternal, "set up TLS");
  }
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  if (opener) {
    // No certificate is ever good: there is no authority that could have signed one.
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_psk_use_session_callback(context.get(), UseSession);
  } else {
    SSL_CTX_set_psk_find_session_callback(context.get(), FindSession);
  }
  return context;
}

}  // namespace tutti::comm

// Wraps OpenSSL's objects in owning pointers, and its errors in text. Internal to this room.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::http {

struct FreeOpenSsl {
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL* session) const { ::SSL_free(session); }
  void operator()(BIO* bio) const { ::BIO_free_all(bio); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { ::X509_EXTENSION_free(extension); }
};
using BioPtr = std::unique_ptr<BIO, FreeOpenSsl>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeOpenSsl>;
using CertificatePtr = std::unique_ptr<X509, FreeOpenSsl>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, FreeOpenSsl>;

// Makes a BIO of a connected socket, which the caller goes on owning. Unlike OpenSSL's own it
// raises no SIGPIPE, which the program may not ignore. Null if there is no memory.
BioPtr SocketBio(int fd);

// Returns the errors that OpenSSL has reported to the calling thread since the last call.
std::string QueuedErrors();

bool IsNumericAddress(const std::string& host);

// Returns the next certificate of a PEM text. Null if no other follows, or if it cannot be read,
// which OpenSSL's errors then say.
CertificatePtr NextCertificate(BIO* text);
// Opens a text for reading; null if it is longer than 2 GiB.
BioPtr BioOf(absl::string_view text);

}  // namespace tutti::http
